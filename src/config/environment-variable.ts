import { parseUrl } from "../chain/parse-url.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A parser returns undefined for an invalid text. The wrapper allows undefined as a value. */
export type Parser<T> = (text: string) => { readonly value: T } | undefined;

export const MAX_PORT = 65_535;

/** A variable of the environment: how it is read and how it is documented. */
export interface EnvironmentVariable<T> {
  /** For a variable per chain, the name ends in `<SLUG>`. */
  readonly name: string;
  /** The names that it reads. */
  readonly names: readonly string[];
  /** The default in Markdown. */
  readonly defaultText: string;
  /** What the variable does, in Markdown. */
  readonly description: string;
  /** Reads the value. An empty variable counts as not set. No problem repeats a value, which may contain a key. */
  read(environment: Environment): { readonly value: T; readonly problems: readonly string[] };
}

interface VariableOptions<T> {
  readonly name: string;
  readonly defaultValue: T;
  /** Default: the default value itself. */
  readonly defaultText?: string;
  readonly description: string;
}

/** @param expected describes a valid value and completes the message "NAME is not ..." */
export function createVariable<T>(
  { name, defaultValue, defaultText = `\`${String(defaultValue)}\``, description }: VariableOptions<T>,
  expected: string,
  parse: Parser<T>,
): EnvironmentVariable<T> {
  return {
    name,
    names: [name],
    defaultText,
    description,
    read(environment) {
      const text = environment[name]?.trim();
      if (text === undefined || text === "") return { value: defaultValue, problems: [] };
      const parsed = parse(text);
      return parsed === undefined
        ? { value: defaultValue, problems: [`${name} is not ${expected}`] }
        : { value: parsed.value, problems: [] };
    },
  };
}

export function createIntegerVariable<T extends number | undefined>(
  options: VariableOptions<T>,
  range: { readonly min: number; readonly max: number },
): EnvironmentVariable<T | number> {
  const { min, max } = range;
  return createVariable<T | number>(options, `a whole number from ${min} to ${max}`, (text) => {
    const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : undefined;
  });
}

export function createChoiceVariable<const T extends string>(
  options: VariableOptions<NoInfer<T>>,
  choices: readonly T[],
): EnvironmentVariable<T> {
  return createVariable<T>(options, `one of ${choices.join(", ")}`, (text) => {
    const value = choices.find((choice) => choice === text);
    return value === undefined ? undefined : { value };
  });
}

/** A base URL without trailing slashes; undefined if the variable is `off`. */
export function createUrlOrOffVariable(
  options: VariableOptions<string | undefined>,
): EnvironmentVariable<string | undefined> {
  return createVariable(options, "an http(s) URL or off", (text) => {
    if (text === "off") return { value: undefined };
    return isHttpUrl(text) ? { value: text.replace(/\/+$/, "") } : undefined;
  });
}

/**
 * Creates one variable per chain of a network, named by prefix and chain in capitals: lists of RPC URLs by chain slug. The
 * default of a chain is the SDK's list.
 */
export function createRpcUrlsVariable(
  network: NetworkSlug,
  prefix: string,
  description: string,
): EnvironmentVariable<ReadonlyMap<string, readonly string[]>> {
  const { chains } = getNetwork(network);
  const slugs = new Map([...chains.keys()].map((slug) => [`${prefix}${slug.toUpperCase()}`, slug]));
  return {
    name: `${prefix}<SLUG>`,
    names: [...slugs.keys()],
    defaultText: "the SDK's public list",
    description,
    read(environment) {
      const problems: string[] = [];
      const value = new Map<string, readonly string[]>();
      for (const [name, slug] of slugs) {
        const defaultValue = chains.get(slug)?.publicRpcUrls ?? [];
        const variable = createVariable(
          { name, defaultValue, description },
          "a comma-separated list of http(s) URLs",
          parseHttpUrls,
        );
        const urls = variable.read(environment);
        value.set(slug, urls.value);
        problems.push(...urls.problems);
      }
      return { value, problems };
    },
  };
}

function parseHttpUrls(text: string): { readonly value: readonly string[] } | undefined {
  const urls = text.split(",").map((url) => url.trim());
  return urls.every(isHttpUrl) ? { value: urls } : undefined;
}

export function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(parseUrl(text)?.protocol ?? "");
}

export function parsePorts(text: string): { readonly value: readonly number[] } | undefined {
  const ports = text.split(",").map((port) => parsePort(port.trim(), 1));
  return ports.every((port) => port !== undefined) ? { value: ports } : undefined;
}

/** Parses a port from `min` to 65535. */
export function parsePort(text: string, min: number): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : -1;
  return port >= min && port <= MAX_PORT ? port : undefined;
}
