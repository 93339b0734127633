import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.js";
import type { Logger } from "../observability/log.js";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { monotonicNow } from "../resilience/clock.js";

/**
 * Raised when what is shared is printed in another way, since old and new versions have one Redis. A fee setting that is added
 * counts: what an old version has shared lacks it.
 */
const FORMAT_VERSION = 4;
/** How long the start waits for Redis. One that is dead refuses at once, as a rule. */
const CONNECT_WAIT_MS = 250;

/** Connects to Redis, and returns what this process shares with others; undefined if it shares nothing. */
export async function composeSharedState(config: Config, logger: Logger) {
  const { sharedStateUrl: url, rpcQuorum } = config;
  if (url === undefined) return undefined;
  const [{ RedisStore }, { SharedCache }] = await Promise.all([
    import("../shared-state/redis-store.js"),
    import("../shared-state/shared-cache.js"),
  ]);
  // What one endpoint alone has said is not taken from processes with another quorum.
  const prefix = `hop-gateway:${FORMAT_VERSION}:${rpcQuorum > 1 ? `quorum${rpcQuorum}:` : ""}`;
  let endFirstAttempt = (): void => {};
  const firstAttempt = new Promise<void>((resolve) => {
    endFirstAttempt = resolve;
  });
  const redis = new RedisStore({
    url,
    prefix,
    random: Math.random,
    onStateChange(isConnected, reason) {
      endFirstAttempt();
      if (isConnected) logger.info("connected to Redis; state is shared with other processes");
      else logger.warn({ reason }, "Redis is out of reach; this process reads and counts for itself");
    },
  });
  // So that this process need not read what others have read already.
  await withTimeoutOrFallback(firstAttempt, CONNECT_WAIT_MS, undefined);
  // The first command compiles the client's code, which takes longer than a request may wait.
  await redis.get("", CONNECT_WAIT_MS);
  return { cache: new SharedCache(redis, randomUUID(), monotonicNow), redis };
}
