import { parseArgs } from "node:util";
import { NETWORK_SLUGS, type NetworkSlug } from "../hop/networks.js";

export const COMMAND_NAMES = ["serve", "check", "index"] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

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
export const DEFAULT_CHECK_TIMEOUT_SECONDS = 15;
const MAX_CHECK_TIMEOUT_SECONDS = 600;

const COMMON_OPTIONS = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;
const COMMAND_OPTIONS = {
  serve: COMMON_OPTIONS,
  check: { ...COMMON_OPTIONS, network: { type: "string" }, json: { type: "boolean" }, timeout: { type: "string" } },
  index: { ...COMMON_OPTIONS, from: { type: "string" } },
} as const;

/** @throws UsageError */
export function parseCommandLine(args: readonly string[]): Command {
  const [first = ""] = args;
  const isNamed = first !== "" && !first.startsWith("-");
  const name = isNamed ? COMMAND_NAMES.find((each) => each === first) : "serve";
  if (name === undefined) throw new UsageError(`${/^[\w-]{1,20}$/.test(first) ? `"${first}"` : "that"} is no command`);
  const values = parseOptions(name, isNamed ? args.slice(1) : args);
  if (values.help === true) return { name: "help", of: isNamed ? name : undefined };
  if (values.version === true) return { name: "version" };
  if (name === "serve") return { name };
  if (name === "index") return { name, from: values.from };
  return {
    name,
    network: parseNetworkOption(values.network),
    isJson: values.json ?? false,
    timeoutMs: parseTimeoutOption(values.timeout),
  };
}

interface OptionValues {
  readonly help?: boolean;
  readonly version?: boolean;
  readonly network?: string;
  readonly json?: boolean;
  readonly timeout?: string;
  readonly from?: string;
}

function parseOptions(name: CommandName, args: readonly string[]): OptionValues {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: COMMAND_OPTIONS[name],
      allowPositionals: true,
    });
    if (positionals.length > 0) throw new Error(`${name} takes options and nothing else`);
    // It has checked that each is of the type that its option has.
    return values as OptionValues;
  } catch (error) {
    // Node goes on to explain how to write what nobody wants to write.
    const [reason = ""] = (error as Error).message.split(/\.\s/);
    throw new UsageError(reason);
  }
}

function parseNetworkOption(text = "mainnet"): NetworkSlug {
  const network = NETWORK_SLUGS.find((each) => each === text);
  if (network === undefined) throw new UsageError(`--network is one of ${NETWORK_SLUGS.join(", ")}`);
  return network;
}

function parseTimeoutOption(text = `${DEFAULT_CHECK_TIMEOUT_SECONDS}`): number {
  const seconds = /^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) ? Number(text) : 0;
  if (seconds > 0 && seconds <= MAX_CHECK_TIMEOUT_SECONDS) return seconds * 1_000;
  throw new UsageError(`--timeout is a number of seconds up to ${MAX_CHECK_TIMEOUT_SECONDS}`);
}
