import { parseArgs } from "node:util";
import { type NetworkSlug, networkSlugs } from "../hop/networks.js";

export const commandNames = ["serve", "check", "index"] as const;
export type CommandName = (typeof commandNames)[number];

/** What the words after `hop-gateway` ask for. */
export type Command =
  | { readonly name: "serve" }
  | { readonly name: "check"; readonly network: NetworkSlug; readonly isJson: boolean; readonly timeoutMs: number }
  | { readonly name: "index"; readonly from: string | undefined }
  | { readonly name: "help"; readonly of: CommandName | undefined }
  | { readonly name: "version" };

/** Words that ask for nothing that there is. Its message repeats no argument that may be a URL. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What `check` takes at most where nobody says otherwise, in seconds. */
export const defaultCheckSeconds = 15;
const mostCheckSeconds = 600;

const common = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;
const options = {
  serve: common,
  check: { ...common, network: { type: "string" }, json: { type: "boolean" }, timeout: { type: "string" } },
  index: { ...common, from: { type: "string" } },
} as const;

/** @throws UsageError */
export function readCommandLine(args: readonly string[]): Command {
  const [first = ""] = args;
  const isNamed = first !== "" && !first.startsWith("-");
  const name = isNamed ? commandNames.find((each) => each === first) : "serve";
  if (name === undefined) throw new UsageError(`${/^[\w-]{1,20}$/.test(first) ? `"${first}"` : "that"} is no command`);
  const values = readOptions(name, isNamed ? args.slice(1) : args);
  if (values.help === true) return { name: "help", of: isNamed ? name : undefined };
  if (values.version === true) return { name: "version" };
  if (name === "serve") return { name };
  if (name === "index") return { name, from: values.from };
  return {
    name,
    network: readNetwork(values.network),
    isJson: values.json ?? false,
    timeoutMs: readMs(values.timeout),
  };
}

interface Values {
  readonly help?: boolean;
  readonly version?: boolean;
  readonly network?: string;
  readonly json?: boolean;
  readonly timeout?: string;
  readonly from?: string;
}

function readOptions(name: CommandName, args: readonly string[]): Values {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: options[name], allowPositionals: true });
    if (positionals.length > 0) throw new Error(`${name} takes options and nothing else`);
    // It has checked that each is of the type that its option has.
    return values as Values;
  } catch (error) {
    // Node goes on to explain how to write what nobody wants to write.
    const [reason = ""] = (error as Error).message.split(/\.\s/);
    throw new UsageError(reason);
  }
}

function readNetwork(text = "mainnet"): NetworkSlug {
  const network = networkSlugs.find((each) => each === text);
  if (network === undefined) throw new UsageError(`--network is one of ${networkSlugs.join(", ")}`);
  return network;
}

function readMs(text = `${defaultCheckSeconds}`): number {
  const seconds = /^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) ? Number(text) : 0;
  if (seconds > 0 && seconds <= mostCheckSeconds) return seconds * 1_000;
  throw new UsageError(`--timeout is a number of seconds up to ${mostCheckSeconds}`);
}
