import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { createPendingCommands } from "./pending-commands.js";
import type { RedisTarget } from "./redis-url.js";
import { createRespParser, encodeCommand, isErrorReply, type RedisReply } from "./resp.js";

/** The only connection of a process to Redis. No call rejects or waits longer than its time limit. */
export interface RedisConnection {
  /**
   * Sends a command. Resolves to undefined if Redis is out of reach, replies an error, or does not reply in time.
   * @param timeoutMs default: 5 ms, for what a request waits for
   */
  call(args: readonly string[], timeoutMs?: number): Promise<RedisReply | undefined>;
  /** Listens to a channel from now on, over all connections. */
  subscribe(channel: string, onMessage: (message: string) => void): void;
  unsubscribe(channel: string): void;
  /** Returns whether Redis can be expected to reply within a few milliseconds. */
  isResponsive(): boolean;
  /** Calls back after each connect, when the channels are subscribed to. */
  onConnect(callback: () => void): void;
  stats(): RedisConnectionStats;
  close(): void;
}

/**
 * - ok: replied in time
 * - refused: Redis replied an error, as OOM when it is full
 * - timed_out: replied too late, or not at all
 * - skipped: not sent, since Redis is out of reach or does not keep up
 */
export type RedisCommandResult = "ok" | "refused" | "timed_out" | "skipped";

export interface RedisConnectionStats {
  readonly isConnected: boolean;
  readonly commands: Readonly<Record<RedisCommandResult, number>>;
  /** The number of connections that were lost, by reason. */
  readonly disconnects: Readonly<Record<DisconnectReason, number>>;
}

/** failed: refused, closed or reset; silent: no reply for a second; invalid: something that is not Redis replied. */
export type DisconnectReason = "failed" | "silent" | "invalid";

export interface RedisConnectionOptions {
  readonly target: RedisTarget;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Called when a connection is made, and once when none can be made any more. */
  readonly onStateChange: (isConnected: boolean, reason: DisconnectReason | undefined) => void;
}

/** What a request waits for Redis. */
export const REQUEST_PATH_TIMEOUT_MS = 5;
/** Commands without a reply. At 5 ms per reply, these are 200,000 commands per second. */
export const MAX_PENDING_COMMANDS = 1_000;
/** Bytes that wait to be written. */
export const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** A connection without a reply for this long is closed. */
export const SILENT_MS = 1_000;
export const HEARTBEAT_MS = 250;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/** A connection that lasted for at least this long resets the backoff. */
const MIN_STABLE_MS = 10_000;

/** A socket and what was sent over it. */
interface Session {
  readonly socket: Socket;
  readonly pending: ReturnType<typeof createPendingCommands>;
  readonly startedAt: number;
  isReady: boolean;
}

export function createRedisConnection(options: RedisConnectionOptions): RedisConnection {
  const { target, now, random, onStateChange } = options;
  const channels = new Map<string, (message: string) => void>();
  const connectCallbacks: (() => void)[] = [];
  const commands: Record<RedisCommandResult, number> = { ok: 0, refused: 0, timed_out: 0, skipped: 0 };
  const disconnects: Record<DisconnectReason, number> = { failed: 0, silent: 0, invalid: 0 };
  const state = { isClosed: false, failures: 0, isReported: false, beatAt: now() };
  let session: Session | undefined;
  let reconnectTimer: NodeJS.Timeout | undefined;
  const heartbeat = setInterval(beat, HEARTBEAT_MS).unref();

  function connect(): void {
    if (state.isClosed) return;
    const { host, port, isTls } = target;
    const socket = isTls
      ? connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }) })
      : connectTcp({ host, port });
    const pending = createPendingCommands(now);
    const opened: Session = { socket, pending, startedAt: now(), isReady: false };
    session = opened;
    const parse = createRespParser({
      onReply(reply) {
        if (!pending.settleOldest(reply)) disconnect(opened, "invalid");
      },
      onPush: ([kind, channel, message]) => {
        if (kind === "message" && typeof channel === "string" && typeof message === "string")
          channels.get(channel)?.(message);
        // The confirmation comes in the place of a reply.
        else if (kind === "subscribe" || kind === "unsubscribe") pending.settleOldest(null);
      },
    });
    socket.setNoDelay(true);
    socket.on("error", () => disconnect(opened, "failed"));
    socket.on("close", () => disconnect(opened, "failed"));
    socket.on("data", (chunk) => {
      if (session !== opened) return;
      try {
        parse(chunk);
      } catch {
        disconnect(opened, "invalid");
      }
    });
    socket.once(isTls ? "secureConnect" : "connect", () => void authenticate(opened));
  }

  /** Enters RESP3, in which messages of channels and replies to commands share a connection. */
  async function authenticate(opened: Session): Promise<void> {
    const { username = "default", password, database } = target;
    const replies = await Promise.all([
      write(opened, ["HELLO", "3", ...(password === undefined ? [] : ["AUTH", username, password])], SILENT_MS),
      ...(database === 0 ? [] : [write(opened, ["SELECT", String(database)], SILENT_MS)]),
    ]);
    if (session !== opened) return;
    if (!replies.every((reply) => reply !== undefined && !isErrorReply(reply))) return disconnect(opened, "invalid");
    opened.isReady = true;
    state.isReported = false;
    onStateChange(true, undefined);
    for (const channel of channels.keys()) void write(opened, ["SUBSCRIBE", channel], SILENT_MS);
    for (const callback of connectCallbacks) callback();
  }

  function disconnect(ended: Session, reason: DisconnectReason): void {
    if (session !== ended) return;
    session = undefined;
    ended.socket.destroy();
    ended.pending.dropAll();
    if (state.isClosed) return;
    disconnects[reason] += 1;
    if (ended.isReady && now() - ended.startedAt > MIN_STABLE_MS) state.failures = 0;
    if (!state.isReported) onStateChange(false, reason);
    state.isReported = true;
    const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** Math.min(state.failures, 16), MAX_BACKOFF_MS);
    state.failures += 1;
    // So that the replicas do not all come at once when Redis is back.
    reconnectTimer = setTimeout(connect, backoffMs * (0.5 + random() / 2)).unref();
  }

  function beat(): void {
    const time = now();
    const isLate = time - state.beatAt > 2 * HEARTBEAT_MS;
    state.beatAt = time;
    if (session === undefined) return;
    // After a pause of this process, the replies still wait to be read.
    const waitingSince = session.isReady ? session.pending.oldestSentAt() : session.startedAt;
    if (!isLate && waitingSince !== undefined && time - waitingSince > SILENT_MS) disconnect(session, "silent");
    else if (session.isReady && session.pending.count() === 0) void write(session, ["PING"], SILENT_MS);
  }

  /** Sends a command. Resolves to undefined without a reply in time. */
  function write({ socket, pending }: Session, args: readonly string[], timeoutMs: number) {
    const reply = pending.add(timeoutMs);
    socket.write(encodeCommand(args));
    return reply;
  }

  function findResponsiveSession(): Session | undefined {
    if (session === undefined || !session.isReady) return undefined;
    const { pending, socket } = session;
    const hasRoom = pending.count() < MAX_PENDING_COMMANDS && socket.writableLength < MAX_UNSENT_BYTES;
    return hasRoom && !pending.isSlow() ? session : undefined;
  }

  connect();
  return {
    async call(args, timeoutMs = REQUEST_PATH_TIMEOUT_MS) {
      const responsive = findResponsiveSession();
      if (responsive === undefined) {
        commands.skipped += 1;
        return undefined;
      }
      const reply = await write(responsive, args, timeoutMs);
      const result = reply === undefined ? "timed_out" : isErrorReply(reply) ? "refused" : "ok";
      commands[result] += 1;
      return result === "ok" ? reply : undefined;
    },
    subscribe(channel, onMessage) {
      channels.set(channel, onMessage);
      if (session?.isReady) void write(session, ["SUBSCRIBE", channel], SILENT_MS);
    },
    unsubscribe(channel) {
      channels.delete(channel);
      if (session?.isReady) void write(session, ["UNSUBSCRIBE", channel], SILENT_MS);
    },
    isResponsive: () => findResponsiveSession() !== undefined,
    onConnect: (callback) => void connectCallbacks.push(callback),
    stats: () => ({
      isConnected: session?.isReady === true,
      commands: { ...commands },
      disconnects: { ...disconnects },
    }),
    close() {
      state.isClosed = true;
      clearInterval(heartbeat);
      clearTimeout(reconnectTimer);
      if (session !== undefined) disconnect(session, "failed");
    },
  };
}
