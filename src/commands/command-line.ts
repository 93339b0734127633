import { parseArgs } from "node:util";
import { parseBaseUrl } from "../chain/parse-url.js";
import { NETWORK_SLUGS, type NetworkSlug } from "../hop/networks.js";

export const COMMAND_NAMES = ["serve", "check", "compare", "replay", "index"] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

/** A parsed command line. */
export type Command =
  | { readonly name: "serve" }
  | { readonly name: "check"; readonly network: NetworkSlug; readonly isJson: boolean; readonly timeoutMs: number }
  | ({ readonly name: "compare" } & CompareOptions)
  | ({ readonly name: "replay" } & ReplayOptions)
  | { readonly name: "index"; readonly from: string | undefined }
  | { readonly name: "help"; readonly command: CommandName | undefined; readonly isAll: boolean }
  | { readonly name: "version" };

/** What to compare with the SDK. */
export interface CompareOptions {
  readonly network: NetworkSlug;
  /** Routes as `token:from:to`; undefined: random ones. */
  readonly routes: readonly string[] | undefined;
  /** In the smallest unit of each token; undefined: random ones. */
  readonly amounts: readonly bigint[] | undefined;
  /** Number of quotes; undefined: one for each of the given routes and amounts, or DEFAULT_COMPARE_COUNT. */
  readonly count: number | undefined;
  /** Whether to print JSON instead of text. */
  readonly isJson: boolean;
}

/** Which requests to send to two servers. */
export interface ReplayOptions {
  /** URLs without a slash at the end. */
  readonly old: string;
  readonly new: string;
  /** Path of a file with one GET path a line; undefined: all routes. */
  readonly file: string | undefined;
  /** By how much numbers that move with the chains may differ. */
  readonly tolerancePercent: number;
  readonly isJson: boolean;
}

/** An invalid command line. The message repeats no argument that may be a URL. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Default of the total time limit of `check`. */
export const DEFAULT_CHECK_TIMEOUT_SECONDS = 15;
const MAX_CHECK_TIMEOUT_SECONDS = 600;
/** Quotes that `compare` compares unless routes or a number are given. */
export const DEFAULT_COMPARE_COUNT = 10;
const MAX_COMPARE_COUNT = 10_000;
const ROUTE_PATTERN = /^[\w.]{1,20}:\w{1,20}:\w{1,20}$/;
/** Up to 2^256-1, which has 78 digits. */
const AMOUNT_PATTERN = /^[1-9][0-9]{0,77}$/;
const MAX_AMOUNT = 2n ** 256n - 1n;

/** Default of the tolerance of `replay`. */
export const DEFAULT_TOLERANCE_PERCENT = 0.5;

const COMMON_OPTIONS = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;
const COMMAND_OPTIONS = {
  serve: { ...COMMON_OPTIONS, all: { type: "boolean" } },
  check: { ...COMMON_OPTIONS, network: { type: "string" }, json: { type: "boolean" }, timeout: { type: "string" } },
  compare: {
    ...COMMON_OPTIONS,
    network: { type: "string" },
    routes: { type: "string" },
    count: { type: "string" },
    amounts: { type: "string" },
    json: { type: "boolean" },
  },
  replay: {
    ...COMMON_OPTIONS,
    old: { type: "string" },
    new: { type: "string" },
    file: { type: "string" },
    tolerance: { type: "string" },
    json: { type: "boolean" },
  },
  index: { ...COMMON_OPTIONS, from: { type: "string" } },
} as const;

/** @throws UsageError for an unknown command or an invalid option */
export function parseCommandLine(args: readonly string[]): Command {
  const [first = ""] = args;
  const hasCommand = first !== "" && !first.startsWith("-");
  const name = hasCommand ? COMMAND_NAMES.find((command) => command === first) : "serve";
  if (name === undefined)
    throw new UsageError(/^[\w-]{1,20}$/.test(first) ? `unknown command "${first}"` : "unknown command");
  const values = parseOptions(name, hasCommand ? args.slice(1) : args);
  const isAll = values.all === true;
  if (values.help === true) return { name: "help", command: hasCommand ? name : undefined, isAll };
  if (isAll) throw new UsageError("--all needs --help");
  if (values.version === true) return { name: "version" };
  if (name === "serve") return { name };
  if (name === "index") return { name, from: values.from };
  const isJson = values.json ?? false;
  if (name === "replay") return { name, ...parseReplayOptions(values), isJson };
  const common = { network: parseNetworkOption(values.network), isJson };
  if (name === "check") return { name, ...common, timeoutMs: parseTimeoutOption(values.timeout) };
  return {
    name,
    ...common,
    routes: parseListOption("--routes", values.routes, ROUTE_PATTERN, "token:from:to"),
    amounts: parseAmountsOption(values.amounts),
    count: parseCountOption(values.count),
  };
}

type FlagName = "help" | "all" | "version" | "json";
type OptionName = { [C in CommandName]: keyof (typeof COMMAND_OPTIONS)[C] }[CommandName];
/** The values of all options; those that a command does not have are undefined. */
type OptionValues = Readonly<
  Partial<Record<Extract<OptionName, FlagName>, boolean> & Record<Exclude<OptionName, FlagName>, string>>
>;

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

function parseTimeoutOption(text = `${DEFAULT_CHECK_TIMEOUT_SECONDS}`): number {
  const seconds = /^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) ? Number(text) : 0;
  if (seconds > 0 && seconds <= MAX_CHECK_TIMEOUT_SECONDS) return seconds * 1_000;
  throw new UsageError(`--timeout must be a number of seconds up to ${MAX_CHECK_TIMEOUT_SECONDS}`);
}

function parseReplayOptions(values: OptionValues): Omit<ReplayOptions, "isJson"> {
  const tolerancePercent = /^[0-9]{1,3}(\.[0-9]{1,9})?$/.test(values.tolerance ?? `${DEFAULT_TOLERANCE_PERCENT}`)
    ? Number(values.tolerance ?? DEFAULT_TOLERANCE_PERCENT)
    : Number.NaN;
  if (!(tolerancePercent <= 100)) throw new UsageError("--tolerance must be a number of percent from 0 to 100");
  const servers = { old: parseServerOption("--old", values.old), new: parseServerOption("--new", values.new) };
  return { ...servers, file: values.file, tolerancePercent };
}

/** Returns the URL without a slash at the end. */
function parseServerOption(name: string, text = ""): string {
  const url = parseBaseUrl(text);
  if (url === undefined)
    throw new UsageError(`${name} must be the URL of a server: http or https, without a user, a query or a fragment`);
  return url;
}

/** @param expected describes an element */
function parseListOption(
  name: string,
  text: string | undefined,
  pattern: RegExp,
  expected: string,
): readonly string[] | undefined {
  const elements = text?.split(",");
  if (elements?.every((element) => pattern.test(element)) === false)
    throw new UsageError(`${name} must be a comma-separated list of ${expected}`);
  return elements;
}

function parseAmountsOption(text: string | undefined): readonly bigint[] | undefined {
  const expected = "whole numbers in the token's smallest unit";
  const amounts = parseListOption("--amounts", text, AMOUNT_PATTERN, expected)?.map(BigInt);
  if (amounts?.every((amount) => amount <= MAX_AMOUNT) === false)
    throw new UsageError("--amounts must be smaller than 2^256");
  return amounts;
}

function parseCountOption(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COMPARE_COUNT) return count;
  throw new UsageError(`--count must be a number from 1 to ${MAX_COMPARE_COUNT}`);
}
