import type { CachePolicy } from "../../operations/operation.js";

const NO_HEADERS: readonly string[] = [];

/** The headers of the last policy: most responses have the same as the one before. */
let last: { readonly policy: Exclude<CachePolicy, "private">; readonly headers: readonly string[] } = {
  policy: { ageSeconds: Number.NaN, maxAgeSeconds: Number.NaN },
  headers: NO_HEADERS,
};

/** Returns the caching headers of a response: names and values alternate. */
export function buildCacheHeaders(policy: CachePolicy | undefined): readonly string[] {
  if (policy === undefined) return NO_HEADERS;
  if (policy === "private") return NO_STORE_HEADERS;
  const isSame =
    policy.ageSeconds === last.policy.ageSeconds &&
    policy.maxAgeSeconds === last.policy.maxAgeSeconds &&
    policy.staleWhileRevalidateSeconds === last.policy.staleWhileRevalidateSeconds;
  if (!isSame) last = { policy, headers: formatCacheHeaders(policy) };
  return last.headers;
}

function formatCacheHeaders(policy: Exclude<CachePolicy, "private">): readonly string[] {
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
export const NO_STORE_HEADERS: readonly string[] = ["cache-control", "no-store"];

/** Rounds down: Age and Cache-Control take whole seconds (RFC 9111 1.2.2). */
function toWholeSeconds(seconds: number): string {
  return String(Math.max(0, Math.floor(seconds)));
}
