import { cors } from "@connectrpc/connect";
import type { CachePolicy } from "../../operations/operation.js";
import type { DocsLocation } from "./error-mapping.js";

/** Alternating names and values: the flat form that Node.js writes without checking each entry. */
export type HeaderList = readonly string[];

/** Flattens headers by name. */
export function toHeaderList(headers: Readonly<Record<string, string>>): HeaderList {
  return Object.entries(headers).flat();
}

/** Response metadata of operations, and the validator that scripts send back. */
const METADATA_HEADERS = ["Source", "Observed-At", "Warning", "ETag"];
const EXPOSED_HEADERS = ["X-Request-Id", "Retry-After", "Age", ...METADATA_HEADERS, ...cors.exposedHeaders].join(", ");
const EXPOSED_HEADERS_WITH_RATE_LIMIT = `${EXPOSED_HEADERS}, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset`;

/** The common headers of responses that shared caches may keep. */
const SHARED_HEADERS = toHeaderList({
  "access-control-allow-origin": "*",
  "access-control-expose-headers": EXPOSED_HEADERS,
  "x-content-type-options": "nosniff",
});

/** Returns the common headers of a response that shared caches may keep. */
export function buildSharedHeaders(): string[] {
  return [...SHARED_HEADERS];
}

/** Returns the headers of every response on every protocol, except those that shared caches may keep. */
export function buildCommonHeaders({
  requestId,
  rateLimitHeaders,
  docsUrl,
}: DocsLocation & {
  readonly requestId: string;
  readonly rateLimitHeaders: HeaderList;
}): string[] {
  const exposed = rateLimitHeaders.length === 0 ? EXPOSED_HEADERS : EXPOSED_HEADERS_WITH_RATE_LIMIT;
  const headers = [
    "x-request-id",
    requestId,
    "access-control-allow-origin",
    "*",
    "access-control-expose-headers",
    docsUrl === undefined ? exposed : `${exposed}, Link`,
    "x-content-type-options",
    "nosniff",
  ];
  for (const text of rateLimitHeaders) headers.push(text);
  return headers;
}

const NO_HEADERS: HeaderList = [];

/** The headers of the last policy: most responses have the same as the one before. */
let last: { readonly policy: Exclude<CachePolicy, "private">; readonly headers: HeaderList } = {
  policy: { ageSeconds: Number.NaN, maxAgeSeconds: Number.NaN },
  headers: NO_HEADERS,
};

/** Returns the caching headers of a response: names and values alternate. */
export function buildCacheHeaders(policy: CachePolicy | undefined): HeaderList {
  if (policy === undefined) return NO_HEADERS;
  if (policy === "private") return NO_STORE_HEADERS;
  const isSame =
    policy.ageSeconds === last.policy.ageSeconds &&
    policy.maxAgeSeconds === last.policy.maxAgeSeconds &&
    policy.staleWhileRevalidateSeconds === last.policy.staleWhileRevalidateSeconds;
  if (!isSame) last = { policy, headers: formatCacheHeaders(policy) };
  return last.headers;
}

function formatCacheHeaders(policy: Exclude<CachePolicy, "private">): HeaderList {
  const { ageSeconds, maxAgeSeconds, staleWhileRevalidateSeconds } = policy;
  const fresh = `public, max-age=${toWholeSeconds(maxAgeSeconds)}`;
  const control =
    staleWhileRevalidateSeconds === undefined
      ? fresh
      : `${fresh}, stale-while-revalidate=${toWholeSeconds(staleWhileRevalidateSeconds)}`;
  // Responses to GET over Connect may be compressed, depending on the caller.
  return ["age", toWholeSeconds(ageSeconds), "cache-control", control, "vary", "Accept-Encoding"];
}

/** The headers of responses that must not be cached. */
export const NO_STORE_HEADERS: HeaderList = ["cache-control", "no-store"];

/** Rounds down: Age and Cache-Control take whole seconds (RFC 9111 1.2.2). */
function toWholeSeconds(seconds: number): string {
  return String(Math.max(0, Math.floor(seconds)));
}

/** Formats a warning without a date of its own (RFC 7234 5.5); 299 is "miscellaneous persistent warning". */
export function formatWarning(text: string): string {
  const visible = text.replace(/[^\x20-\x7e]/g, "?");
  return `299 - "${visible.replace(/["\\]/g, "\\$&")}"`;
}

const METADATA_NAME_PATTERN = /^[a-z][a-z0-9-]*$/;
const METADATA_VALUE_PATTERN = /^[\x21-\x7e]+$/;

/** Throws if response metadata of an operation is not valid in a header. */
export function assertValidResponseMetadata(entries: Readonly<Record<string, string>>): void {
  for (const name in entries) {
    if (METADATA_NAME_PATTERN.test(name) && METADATA_VALUE_PATTERN.test(entries[name] ?? "")) continue;
    throw new TypeError(`invalid response metadata: ${name}`);
  }
}
