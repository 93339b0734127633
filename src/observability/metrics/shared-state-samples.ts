import type { RedisStats } from "../../shared-state/redis/redis-services.js";
import type { SharedStateStats } from "../../shared-state/shared-state.js";
import type { MetricSample } from "./instruments.js";

/** The part of the load that is about what processes share; undefined: nothing. */
interface SharedLoad {
  readonly sharedState: SharedStateStats | undefined;
  readonly redis: RedisStats | undefined;
}

/** Returns the functions that collect the metrics of what processes share, by their keys in the catalogue. */
export function createSharedStateSamples(getLoad: () => SharedLoad) {
  return {
    sharedReaders() {
      const { topics = [], readTopics = [] } = getLoad().sharedState ?? {};
      return topics.map((topic) => ({ labels: { topic }, value: readTopics.includes(topic) ? 1 : 0 }));
    },
    sharedMessages: () => toSamples("event", getLoad().sharedState?.messages),
    redisConnected() {
      const { redis } = getLoad();
      return redis === undefined ? [] : [{ labels: {}, value: redis.isConnected ? 1 : 0 }];
    },
    redisCommands: () => toSamples("result", getLoad().redis?.commands),
    redisDisconnects: () => toSamples("reason", getLoad().redis?.disconnects),
    redisRefusedValues: () => toSamples("reason", getLoad().redis?.refused),
  };
}

/** Returns one sample per count, labeled with its name. */
function toSamples(label: string, counts: Readonly<Record<string, number>> | undefined): MetricSample[] {
  return Object.entries(counts ?? {}).map(([name, value]) => ({ labels: { [label]: name }, value }));
}
