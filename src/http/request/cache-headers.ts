import type { CachePolicy } from "../../operations/operation.js";

/** The headers, names and values in turn, that say how an answer may be kept. */
export function buildCacheHeaders(policy: CachePolicy | undefined): readonly string[] {
  if (policy === undefined) return [];
  if (policy === "private") return NO_STORE_HEADERS;
  const { ageSeconds, maxAgeSeconds, staleWhileRevalidateSeconds } = policy;
  const fresh = `public, max-age=${toWholeSeconds(maxAgeSeconds)}`;
  const control =
    staleWhileRevalidateSeconds === undefined
      ? fresh
      : `${fresh}, stale-while-revalidate=${toWholeSeconds(staleWhileRevalidateSeconds)}`;
  // Connect's GET gives the same answer compressed to whoever takes it.
  return ["age", toWholeSeconds(ageSeconds), "cache-control", control, "vary", "Accept-Encoding"];
}

/** What nobody may keep. */
export const NO_STORE_HEADERS: readonly string[] = ["cache-control", "no-store"];

/** Both headers take whole seconds only. */
function toWholeSeconds(seconds: number): string {
  return String(Math.max(0, Math.floor(seconds)));
}
