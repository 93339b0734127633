import { MAX_TEXT_CHARS, type MemberChannel, type ToMember } from "./channel.js";
import type { SharedClock, SharedState, SharedStateEvent, SharedTopic, TopicHandlers } from "./shared-state.js";

export interface MemberOptions {
  readonly channel: MemberChannel;
  readonly clock: SharedClock;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

interface JoinedTopic {
  readonly handlers: TopicHandlers;
  isReader: boolean;
}

/** A hub that has sent nothing for this long is out of reach, and what it has said no longer counts. */
export const HUB_SILENT_MS = 1_500;
/** How long the reader's answer is awaited by default; where it hangs, the hub answers earlier. */
export const REQUEST_TIMEOUT_MS = 2_000;
/** Requests that may wait for an answer: one for each chain, document and attestation. */
const MAX_PENDING_REQUESTS = 128;

/** Creates the shared state of a process that is connected to the hub. */
export function createSharedStateMember({ channel, clock, now }: MemberOptions): SharedState {
  const topics = new Map<string, JoinedTopic>();
  const observers: ((topic: string) => void)[] = [];
  const pending = new Map<number, (text: string | undefined) => void>();
  const messages: Record<SharedStateEvent, number> = {
    published: 0,
    received: 0,
    answered: 0,
    unanswered: 0,
    dropped: 0,
  };
  const state = { lastId: 0, heardAt: now() };

  const isHubReachable = (): boolean => now() - state.heardAt < HUB_SILENT_MS;
  const isReader = (topic: JoinedTopic): boolean => topic.isReader && isHubReachable();

  function receive(message: ToMember): void {
    state.heardAt = now();
    switch (message.kind) {
      case "ping":
        channel.send({ type: "shared-state", kind: "pong" });
        break;
      case "role":
        setRole(message.topic, message.isReader);
        break;
      case "publish":
        deliver(message.topic, message.text);
        break;
      case "request":
        void answer(message.topic, message.id, message.text);
        break;
      case "reply":
        pending.get(message.id)?.(message.text);
    }
  }

  function setRole(name: string, isNowReader: boolean): void {
    const topic = topics.get(name);
    if (topic === undefined) return;
    topic.isReader = isNowReader;
    if (!isNowReader) return;
    for (const observe of observers) observe(name);
    topic.handlers.onBecomeReader();
  }

  function deliver(name: string, text: string): void {
    try {
      topics.get(name)?.handlers.onPublished(text);
      messages.received += 1;
    } catch {
      messages.dropped += 1;
    }
  }

  async function answer(name: string, id: number, text: string): Promise<void> {
    const reply = await topics
      .get(name)
      ?.handlers.onRequest(text)
      .catch(() => undefined);
    const isTooLong = reply !== undefined && reply.length > MAX_TEXT_CHARS;
    if (isTooLong) messages.dropped += 1;
    channel.send({ type: "shared-state", kind: "reply", id, text: isTooLong ? undefined : reply });
  }

  function request(topic: string, text: string, timeoutMs: number): Promise<string | undefined> {
    state.lastId += 1;
    const id = state.lastId;
    return new Promise((resolve) => {
      const finish = (reply: string | undefined): void => {
        clearTimeout(timer);
        pending.delete(id);
        messages[reply === undefined ? "unanswered" : "answered"] += 1;
        resolve(reply);
      };
      const timer = setTimeout(finish, timeoutMs, undefined).unref();
      pending.set(id, finish);
      const canSend = pending.size <= MAX_PENDING_REQUESTS && isHubReachable();
      if (!canSend || !channel.send({ type: "shared-state", kind: "request", topic, id, text })) finish(undefined);
    });
  }

  channel.listen(receive);
  return {
    clock,
    join(name, handlers): SharedTopic {
      const topic: JoinedTopic = { handlers, isReader: false };
      topics.set(name, topic);
      channel.send({ type: "shared-state", kind: "join", topic: name });
      return {
        isReader: () => isReader(topic),
        publish(text) {
          const isSent = channel.send({ type: "shared-state", kind: "publish", topic: name, text });
          messages[isSent ? "published" : "dropped"] += 1;
        },
        request: async (text, timeoutMs = REQUEST_TIMEOUT_MS) =>
          isReader(topic) ? undefined : request(name, text, timeoutMs),
      };
    },
    observeReader: (onBecomeReader) => void observers.push(onBecomeReader),
    stats: () => ({
      topics: [...topics.keys()],
      readTopics: [...topics].filter(([, topic]) => isReader(topic)).map(([name]) => name),
      messages: { ...messages },
    }),
  };
}
