import { parseArgs } from "node:util";
import { NETWORK_SLUGS, type NetworkSlug } from "../hop/networks.js";

export const COMMAND_NAMES = ["serve", "check", "index"] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

/** A parsed command line. */
export type Command =
  | { readonly name: "serve" }
  | { readonly name: "check"; readonly network: NetworkSlug; readonly isJson: boolean; readonly timeoutMs: number }
  | { readonly name: "index"; readonly from: string | undefined; readonly copyFrom: string | undefined }
  | { readonly name: "help"; readonly command: CommandName | undefined }
  | { readonly name: "version" };

/** An invalid command line. The message repeats no argument that may be a URL. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Default of the total time limit of `check`. */
export const DEFAULT_CHECK_TIMEOUT_SECONDS = 15;
const MAX_CHECK_TIMEOUT_SECONDS = 600;

const COMMON_OPTIONS = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;
const COMMAND_OPTIONS = {
  serve: COMMON_OPTIONS,
  check: { ...COMMON_OPTIONS, network: { type: "string" }, json: { type: "boolean" }, timeout: { type: "string" } },
  index: { ...COMMON_OPTIONS, from: { type: "string" }, "copy-from": { type: "string" } },
} as const;

/** @throws UsageError for an unknown command or an invalid option */
export function parseCommandLine(args: readonly string[]): Command {
  const [first = ""] = args;
  const hasCommand = first !== "" && !first.startsWith("-");
  const name = hasCommand ? COMMAND_NAMES.find((command) => command === first) : "serve";
  if (name === undefined)
    throw new UsageError(/^[\w-]{1,20}$/.test(first) ? `unknown command "${first}"` : "unknown command");
  const values = parseOptions(name, hasCommand ? args.slice(1) : args);
  if (values.help === true) return { name: "help", command: hasCommand ? name : undefined };
  if (values.version === true) return { name: "version" };
  if (name === "serve") return { name };
  if (name === "index") return { name, from: values.from, copyFrom: parseCopyFromOption(values) };
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
  readonly "copy-from"?: string;
}

function parseOptions(name: CommandName, args: readonly string[]): OptionValues {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: COMMAND_OPTIONS[name],
      allowPositionals: true,
    });
    if (positionals.length > 0) throw new Error(`${name} accepts only options`);
    // parseArgs has checked the type of every value.
    return values as OptionValues;
  } catch (error) {
    // The sentences after the first explain how to pass an argument that begins with a dash.
    const [reason = ""] = (error as Error).message.split(/\.\s/);
    throw new UsageError(reason);
  }
}

function parseNetworkOption(text = "mainnet"): NetworkSlug {
  const network = NETWORK_SLUGS.find((slug) => slug === text);
  if (network === undefined) throw new UsageError(`--network must be one of ${NETWORK_SLUGS.join(", ")}`);
  return network;
}

/** Returns the file of `--copy-from sqlite:<file>`. */
function parseCopyFromOption({ from, "copy-from": text }: OptionValues): string | undefined {
  if (text === undefined) return undefined;
  if (from !== undefined) throw new UsageError("--copy-from and --from exclude each other");
  const file = /^sqlite:(.+)$/.exec(text)?.[1];
  if (file === undefined) throw new UsageError("--copy-from must be sqlite:<file>");
  return file;
}

function parseTimeoutOption(text = `${DEFAULT_CHECK_TIMEOUT_SECONDS}`): number {
  const seconds = /^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) ? Number(text) : 0;
  if (seconds > 0 && seconds <= MAX_CHECK_TIMEOUT_SECONDS) return seconds * 1_000;
  throw new UsageError(`--timeout must be a number of seconds up to ${MAX_CHECK_TIMEOUT_SECONDS}`);
}
