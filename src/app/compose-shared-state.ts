import type { Config } from "../config/config.js";
import type { Logger } from "../observability/log.js";
import { withTimeout } from "../resilience/with-timeout.js";
import type { RedisServices } from "../shared-state/redis/redis-services.js";
import type { SharedClock, SharedState } from "../shared-state/shared-state.js";

/** What this process shares with the other workers of its machine and with other replicas. */
export interface SharedStateModule {
  /** undefined: there are neither. */
  readonly sharedState: SharedState | undefined;
  /** undefined: there are no other replicas. */
  readonly redis: RedisServices | undefined;
}

export interface ComposeSharedStateOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  /** Joins what the workers of this machine share; undefined: this process is the only one. */
  readonly joinWorkers: ((clock?: SharedClock) => SharedState) | undefined;
}

/** How long the start waits for Redis. One that is dead refuses at once, as a rule. */
const CONNECT_WAIT_MS = 250;

export async function composeSharedState({
  config,
  version,
  logger,
  joinWorkers,
}: ComposeSharedStateOptions): Promise<SharedStateModule> {
  const { sharedState: target, sharedStateKey } = config;
  if (target === undefined) return { sharedState: joinWorkers?.(), redis: undefined };
  const [{ createRedisServices, wallClock }, { combineSharedState }] = await Promise.all([
    import("../shared-state/redis/redis-services.js"),
    import("../shared-state/tiered-shared-state.js"),
  ]);
  let endFirstAttempt: () => void = () => {};
  const firstAttempt = new Promise<void>((resolve) => {
    endFirstAttempt = resolve;
  });
  const redis = createRedisServices({
    // What one endpoint alone has said is not taken from replicas with another quorum.
    ...{ target, version: config.rpcQuorum > 1 ? `${version}+quorum${config.rpcQuorum}` : version },
    key: sharedStateKey,
    onStateChange(isConnected, reason) {
      endFirstAttempt();
      if (isConnected) logger.info("connected to Redis; state is shared with other replicas");
      else logger.warn({ reason }, "Redis is out of reach; this process reads and counts for itself");
    },
  });
  // So that this process need not read what others have read already.
  await withTimeout(firstAttempt, CONNECT_WAIT_MS, undefined);
  const sharedState =
    joinWorkers === undefined ? redis.sharedState : combineSharedState(joinWorkers(wallClock), redis.sharedState);
  return { sharedState, redis };
}
