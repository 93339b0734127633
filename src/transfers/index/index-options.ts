import { type PostgresIndexLocation, type PostgresLocation, parsePostgresUrl } from "./database/postgres-location.js";

/** The point from which the chains are indexed. */
export interface IndexStart {
  /** Unix seconds; applies to every chain without a block number. */
  readonly timestamp: number;
  /** Block numbers by chain slug. */
  readonly blocks: ReadonlyMap<string, number>;
}

/** Default length of the history. */
const DEFAULT_DAYS = 7;

/** @param now milliseconds since 1970 */
export function getDefaultIndexStart(now: number): IndexStart {
  return { timestamp: Math.floor(now / 1_000) - DEFAULT_DAYS * 86_400, blocks: new Map() };
}

/**
 * Parses `2024-01-01`, `2024-01-01T12:00:00Z`, `ethereum:19000000`, or several of these separated by commas: blocks for single
 * chains, and at most one date (UTC) for all others. Returns undefined for anything else, and for a date after `now`.
 * @param slugs the known chains
 * @param now milliseconds since 1970
 */
export function parseIndexStart(text: string, slugs: ReadonlySet<string>, now: number): IndexStart | undefined {
  let { timestamp } = getDefaultIndexStart(now);
  let dateCount = 0;
  const blocks = new Map<string, number>();
  for (const part of text.split(",").map((item) => item.trim())) {
    const [, slug, digits] = /^([a-z0-9]+):([0-9]{1,12})$/.exec(part) ?? [];
    if (slug !== undefined) {
      if (!slugs.has(slug) || blocks.has(slug)) return undefined;
      blocks.set(slug, Number(digits));
      continue;
    }
    const ms = parseDateMs(part);
    if (ms === undefined || ms > now) return undefined;
    timestamp = Math.floor(ms / 1_000);
    dateCount += 1;
  }
  return dateCount > 1 ? undefined : { timestamp, blocks };
}

/** Returns milliseconds since 1970; undefined for dates that do not exist, which JavaScript would move to the next month. */
function parseDateMs(text: string): number | undefined {
  const [, day, time = "T00:00:00Z"] =
    /^([0-9]{4}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?Z)?$/.exec(text) ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(`${day}${time}`);
  if (Number.isNaN(ms) || ms < 0) return undefined;
  return new Date(ms).toISOString().slice(0, 10) === day ? ms : undefined;
}

/** Where the index is, and what one process may take of a server. */
export type IndexLocation =
  | { readonly kind: "sqlite"; readonly file: string }
  | ({ readonly kind: "postgres" } & PostgresIndexLocation);

/** Where the index is, as INDEX says it. */
export type IndexStorage =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly location: PostgresLocation };

/** Parses `off`, `sqlite:<file>` or a URL of PostgreSQL; returns undefined for anything else. */
export function parseIndexStorage(text: string): { readonly storage: IndexStorage | undefined } | undefined {
  if (text === "off") return { storage: undefined };
  const location = parsePostgresUrl(text);
  if (location !== undefined) return { storage: { kind: "postgres", location } };
  const file = /^sqlite:(.+)$/.exec(text)?.[1];
  return file === undefined || file.startsWith(":") ? undefined : { storage: { kind: "sqlite", file } };
}
