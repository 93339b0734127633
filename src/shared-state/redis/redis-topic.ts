import { MAX_TEXT_CHARS } from "../channel.js";
import type { TopicHandlers } from "../shared-state.js";
import { ACCEPT_INTERVAL_MS } from "./pending-requests.js";
import type { RedisConnection } from "./protocol/connection.js";
import { RefusedValueError, type Signer } from "./signing.js";
import { createTopicLease, LEASE_TTL_MS } from "./topic-lease.js";
import {
  MAX_MESSAGE_AGE_MS,
  MAX_MESSAGE_CHARS,
  parseTopicMessage,
  printTopicMessage,
  type TopicMessage,
} from "./topic-message.js";

/** A topic that replicas share. */
export interface RedisTopic {
  readonly name: string;
  /** Takes what is kept in Redis, and asks for the lease: after the join and after each connect. */
  start(): void;
  /** Renews the lease, or asks for it. Called about once a second. */
  tick(): void;
  isReader(): boolean;
  /** Returns whether another replica can be asked now. */
  canRequest(): boolean;
  /** Resolves when Redis has said who reads, after the join; undefined: it has. */
  awaitFirstClaim(): Promise<void> | undefined;
  /** Answers a request of another replica, if this one reads. */
  answer(request: TopicMessage): Promise<void>;
  /** Resolves to false if the reader cannot have received the request. */
  sendRequest(id: number, text: string, timeoutMs: number): Promise<boolean>;
  /** Returns false if the value is not sent. */
  publish(text: string): boolean;
  close(): Promise<void>;
}

export interface RedisTopicOptions extends Omit<TopicHandlers, "onBecomeReader"> {
  readonly name: string;
  readonly memberId: string;
  readonly connection: RedisConnection;
  readonly signer: Signer;
  /** Start of the names of the topic's keys and channel. */
  readonly prefix: string;
  /** Start of the names of all members' inboxes. */
  readonly inboxPrefix: string;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly random: () => number;
  /** Returns whether this process takes part, and not another one of the same machine. */
  readonly isActive: () => boolean;
  readonly countHeldLeases: () => number;
  readonly onBecomeReader: () => void;
  /** Called with what is wrong with a value from Redis. */
  readonly onRefused: (error: unknown) => void;
}

/** How long the last value is kept for replicas that start. Who takes it applies its own limits of age. */
const KEPT_VALUE_TTL_MS = 60_000;
/** Nothing on the path of a request waits for these. */
const BACKGROUND_TIMEOUT_MS = 500;
/** A replica that reads many topics lets others go first by so much for each. */
const DELAY_PER_LEASE_MS = 10;
const MAX_DELAY_MS = 300;
/** Requests of other replicas that a reader works on. */
const MAX_ACCEPTED_REQUESTS = 256;

/** Keeps and sends a value, unless the sender's lease has passed to another one. A full Redis keeps nothing, but sends. */
const PUBLISH_SCRIPT = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.pcall('set', KEYS[2], ARGV[3], 'PX', ARGV[4])
redis.call('publish', ARGV[2], ARGV[3])
return 1`;

export function createRedisTopic(options: RedisTopicOptions): RedisTopic {
  const { name, memberId, connection, signer, prefix, inboxPrefix, now, random, isActive, onRefused } = options;
  const channel = `${prefix}messages`;
  const leaseKey = `${prefix}lease`;
  const valueKey = `${prefix}value`;
  const lease = createTopicLease({ connection, key: leaseKey, memberId, now });
  const state = { isSubscribed: false, isClosed: false, acceptedRequests: 0 };
  /** The newest lease from which a value came. */
  const fence = { token: 0, seenAt: Number.NEGATIVE_INFINITY };
  let claimTimer: NodeJS.Timeout | undefined;
  let firstClaim: Promise<void> | undefined;

  function print(place: string, message: Partial<TopicMessage> & Pick<TopicMessage, "kind">): string {
    const token = lease.isHeld() ? lease.token() : 0;
    return printTopicMessage(signer, place, { topic: name, from: memberId, token, id: 0, text: undefined, ...message });
  }

  function receive(printed: string): void {
    try {
      const message = parseTopicMessage(signer, channel, printed, MAX_MESSAGE_AGE_MS);
      if (message.from === memberId) return;
      if (message.kind === "publish") takeValue(message);
      else if (message.kind === "release") claimLater(random() * DELAY_PER_LEASE_MS);
    } catch (error) {
      onRefused(error);
    }
  }

  /** @throws RefusedValueError for a value of an earlier reader, and what the handler throws */
  function takeValue({ token, text = "" }: TopicMessage): void {
    if (token > 0) {
      // Not for ever: a Redis that takes over may have a clock that is behind.
      if (token < fence.token && now() - fence.seenAt < 2 * LEASE_TTL_MS) throw new RefusedValueError("fenced");
      fence.token = token;
      fence.seenAt = now();
    }
    options.onPublished(text);
  }

  async function answer({ from, id, text = "" }: TopicMessage): Promise<void> {
    if (!lease.isHeld() || state.acceptedRequests >= MAX_ACCEPTED_REQUESTS) return;
    const inbox = inboxPrefix + from;
    const send = (kind: "accept" | "reply", reply?: string): void =>
      void connection.call(["PUBLISH", inbox, print(inbox, { kind, id, text: reply })], BACKGROUND_TIMEOUT_MS);
    state.acceptedRequests += 1;
    send("accept");
    const timer = setInterval(send, ACCEPT_INTERVAL_MS, "accept").unref();
    const reply = await options.onRequest(text).catch(() => undefined);
    clearInterval(timer);
    state.acceptedRequests -= 1;
    send("reply", reply !== undefined && reply.length > MAX_TEXT_CHARS ? undefined : reply);
  }

  async function claim(): Promise<void> {
    if (state.isClosed || !isActive()) return;
    if (await lease.claim()) options.onBecomeReader();
  }

  function claimLater(delayMs: number): void {
    clearTimeout(claimTimer);
    const heldMs = Math.min(options.countHeldLeases() * DELAY_PER_LEASE_MS, MAX_DELAY_MS);
    claimTimer = setTimeout(() => void claim(), delayMs + heldMs).unref();
  }

  async function takeKeptValue(): Promise<void> {
    // Whatever is under the key, the reply is not larger than a value can be.
    const args = ["GETRANGE", valueKey, "0", String(MAX_MESSAGE_CHARS)];
    const printed = await connection.call(args, BACKGROUND_TIMEOUT_MS);
    if (typeof printed !== "string" || printed === "" || lease.isHeld()) return;
    try {
      takeValue(parseTopicMessage(signer, channel, printed, KEPT_VALUE_TTL_MS));
    } catch (error) {
      onRefused(error);
    }
  }

  function join(): void {
    if (state.isSubscribed) return;
    state.isSubscribed = true;
    connection.subscribe(channel, receive);
  }

  function leave(): void {
    if (!state.isSubscribed) return;
    state.isSubscribed = false;
    connection.unsubscribe(channel);
    void lease.release();
  }

  function start(): void {
    if (!isActive()) return;
    join();
    void takeKeptValue();
    const pending = claim().finally(() => {
      if (firstClaim === pending) firstClaim = undefined;
    });
    firstClaim = pending;
  }

  return {
    name,
    start,
    answer,
    tick() {
      if (!isActive()) leave();
      else if (!state.isSubscribed) start();
      else if (lease.isHeld()) void claim();
      else claimLater(0);
    },
    isReader: lease.isHeld,
    awaitFirstClaim: () => firstClaim,
    canRequest: () => isActive() && lease.holder() !== undefined && connection.isResponsive(),
    async sendRequest(id, text, timeoutMs) {
      const reader = lease.holder();
      if (reader === undefined) return false;
      const inbox = inboxPrefix + reader;
      const receivers = await connection.call(
        ["PUBLISH", inbox, print(inbox, { kind: "request", id, text })],
        timeoutMs,
      );
      // A reader that was killed has lost its connection.
      return typeof receivers === "number" && receivers > 0;
    },
    publish(text) {
      if (text.length > MAX_TEXT_CHARS || !isActive() || !connection.isResponsive()) return false;
      const message = print(channel, { kind: "publish", text });
      const args = lease.isHeld()
        ? ["EVAL", PUBLISH_SCRIPT, "2", leaseKey, valueKey, lease.value(), channel, message, String(KEPT_VALUE_TTL_MS)]
        : ["PUBLISH", channel, message];
      void connection.call(args, BACKGROUND_TIMEOUT_MS);
      return true;
    },
    async close() {
      state.isClosed = true;
      clearTimeout(claimTimer);
      if (!lease.isHeld()) return;
      await lease.release();
      await connection.call(["PUBLISH", channel, print(channel, { kind: "release" })]);
    },
  };
}
