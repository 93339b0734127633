import type { RedisSharedState } from "./redis/redis-shared-state.js";
import type { SharedState } from "./shared-state.js";

/**
 * Combines the processes of one machine with other machines. Of each topic, one process of a machine (its local reader)
 * asks the other machines on behalf of all, takes what they publish and hands it on. Without the other machines, the
 * processes of this one go on sharing.
 * @param local shares with the processes of this machine, on the clock of `remote`
 */
export function combineSharedState(local: SharedState, remote: RedisSharedState): SharedState {
  return {
    clock: remote.clock,
    join(name, handlers) {
      const localTopic = local.join(name, handlers);
      const remoteTopic = remote.joinWhile(
        name,
        {
          ...handlers,
          onPublished(text) {
            handlers.onPublished(text);
            localTopic.publish(text);
          },
        },
        localTopic.isReader,
      );
      return {
        isReader: () => localTopic.isReader() && remoteTopic.isReader(),
        publish(text) {
          localTopic.publish(text);
          if (localTopic.isReader()) remoteTopic.publish(text);
        },
        // A local reader that is asked by another process of the machine asks the other machines in turn.
        request: (text, timeoutMs) =>
          localTopic.isReader() ? remoteTopic.request(text, timeoutMs) : localTopic.request(text, timeoutMs),
      };
    },
    observeReader(onBecomeReader) {
      remote.observeReader(onBecomeReader);
    },
    stats() {
      const { messages, readTopics } = remote.stats();
      const { messages: localMessages, topics } = local.stats();
      return {
        topics,
        readTopics,
        messages: {
          published: messages.published + localMessages.published,
          received: messages.received + localMessages.received,
          answered: messages.answered + localMessages.answered,
          unanswered: messages.unanswered + localMessages.unanswered,
          dropped: messages.dropped + localMessages.dropped,
        },
      };
    },
  };
}
