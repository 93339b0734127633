import { randomBytes } from "node:crypto";
import { REQUEST_TIMEOUT_MS } from "../member.js";
import type { SharedClock, SharedState, SharedStateEvent, SharedTopic, TopicHandlers } from "../shared-state.js";
import { createPendingRequests } from "./pending-requests.js";
import { REQUEST_PATH_TIMEOUT_MS, type RedisConnection } from "./protocol/connection.js";
import { waitFor } from "./protocol/wait-for.js";
import { createRedisTopic, type RedisTopic } from "./redis-topic.js";
import { type RefusalReason, RefusedValueError, type Signer } from "./signing.js";
import { LEASE_INTERVAL_MS } from "./topic-lease.js";
import { MAX_MESSAGE_AGE_MS, parseTopicMessage } from "./topic-message.js";

/** State that is shared through Redis. */
export interface RedisSharedState extends SharedState {
  /**
   * Joins a topic of which another transport chooses one process per machine: the only one of them that uses Redis.
   * @param isActive returns whether this process is that one
   */
  joinWhile(topic: string, handlers: TopicHandlers, isActive: () => boolean): SharedTopic;
  /** Gives up all leases. */
  close(): Promise<void>;
}

export interface RedisSharedStateOptions {
  readonly connection: RedisConnection;
  readonly signer: Signer;
  /** Start of the names of all keys and channels; differs between versions of the service. */
  readonly prefix: string;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly clock: SharedClock;
  readonly random: () => number;
  /** Called for each value that is refused. */
  readonly onRefused: (reason: RefusalReason) => void;
}

/** While a reader works on requests of this process, Redis has to reply about this often. */
const WATCH_INTERVAL_MS = 25;
/** Part of the time for Redis that the first request of a topic waits to learn who reads. */
const FIRST_CLAIM_TIMEOUT_MS = REQUEST_PATH_TIMEOUT_MS / 2;

export function createRedisSharedState(options: RedisSharedStateOptions): RedisSharedState {
  const { connection, signer, prefix, now, clock, random, onRefused } = options;
  const memberId = randomBytes(8).toString("hex");
  const inbox = `${prefix}inbox:${memberId}`;
  const topics = new Map<string, RedisTopic>();
  const observers: ((topic: string) => void)[] = [];
  const requests = createPendingRequests(now);
  const messages: Record<SharedStateEvent, number> = {
    published: 0,
    received: 0,
    answered: 0,
    unanswered: 0,
    dropped: 0,
  };
  let watchTimer: NodeJS.Timeout | undefined;

  connection.subscribe(inbox, (printed) => {
    try {
      const message = parseTopicMessage(signer, inbox, printed, MAX_MESSAGE_AGE_MS);
      const { kind, id, text } = message;
      if (kind === "accept") {
        requests.accept(id);
        watch();
      } else if (kind === "reply") requests.settle(id, text);
      else if (kind === "request") void topics.get(message.topic)?.answer(message);
    } catch (error) {
      refuse(error);
    }
  });
  connection.onConnect(() => {
    for (const topic of topics.values()) topic.start();
  });
  const timer = setInterval(tick, LEASE_INTERVAL_MS * (0.9 + 0.2 * random())).unref();

  function tick(): void {
    for (const topic of topics.values()) topic.tick();
  }

  /** Notices within some milliseconds that Redis hangs while accepted requests wait. */
  function watch(): void {
    watchTimer ??= setInterval(() => {
      if (!connection.isResponsive()) requests.giveUp();
      if (requests.hasAccepted()) void connection.call(["PING"], WATCH_INTERVAL_MS);
      else {
        clearInterval(watchTimer);
        watchTimer = undefined;
      }
    }, WATCH_INTERVAL_MS).unref();
  }

  function refuse(error: unknown): void {
    messages.dropped += 1;
    // What a handler throws is about a value that it does not understand.
    onRefused(error instanceof RefusedValueError ? error.reason : "malformed");
  }

  async function request(topic: RedisTopic, text: string, timeoutMs: number): Promise<string | undefined> {
    const reply = await ask(topic, text, timeoutMs);
    messages[reply === undefined ? "unanswered" : "answered"] += 1;
    return reply;
  }

  async function ask(topic: RedisTopic, text: string, timeoutMs: number): Promise<string | undefined> {
    const firstClaim = topic.awaitFirstClaim();
    if (firstClaim !== undefined) await waitFor(firstClaim, FIRST_CLAIM_TIMEOUT_MS);
    const pending = topic.canRequest() ? requests.add(topic.name, timeoutMs) : undefined;
    if (pending === undefined) return undefined;
    const claimTimeoutMs = firstClaim === undefined ? 0 : FIRST_CLAIM_TIMEOUT_MS;
    const isSent = await topic.sendRequest(pending.id, text, REQUEST_PATH_TIMEOUT_MS - claimTimeoutMs);
    if (!isSent) requests.settle(pending.id, undefined);
    return pending.reply;
  }

  function joinWhile(name: string, handlers: TopicHandlers, isActive: () => boolean): SharedTopic {
    const topic = createRedisTopic({
      ...{ name, memberId, connection, signer, now, random, isActive },
      // In one slot of a Redis Cluster.
      prefix: `${prefix}{${name.replaceAll(" ", ":")}}:`,
      inboxPrefix: `${prefix}inbox:`,
      countHeldLeases: () => [...topics.values()].filter((other) => other.isReader()).length,
      onBecomeReader() {
        requests.giveUp(name);
        for (const observe of observers) observe(name);
        handlers.onBecomeReader();
      },
      onPublished(text) {
        handlers.onPublished(text);
        messages.received += 1;
      },
      onRequest: handlers.onRequest,
      onRefused: refuse,
    });
    topics.set(name, topic);
    topic.start();
    return {
      isReader: topic.isReader,
      publish(text) {
        messages[topic.publish(text) ? "published" : "dropped"] += 1;
      },
      request: async (text, timeoutMs = REQUEST_TIMEOUT_MS) =>
        topic.isReader() ? undefined : request(topic, text, timeoutMs),
    };
  }

  return {
    clock,
    joinWhile,
    join: (name, handlers) => joinWhile(name, handlers, () => true),
    observeReader: (onBecomeReader) => void observers.push(onBecomeReader),
    stats: () => ({
      topics: [...topics.keys()],
      readTopics: [...topics.values()].filter((topic) => topic.isReader()).map(({ name }) => name),
      messages: { ...messages },
    }),
    async close() {
      clearInterval(timer);
      clearInterval(watchTimer);
      requests.giveUp();
      await Promise.all([...topics.values()].map((topic) => topic.close()));
    },
  };
}
