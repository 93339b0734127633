import type { RedisReply } from "./resp.js";
import { waitFor } from "./wait-for.js";

/** The commands of one connection that have no reply yet. Redis replies in the order in which they were sent. */
export interface PendingCommands {
  /** Adds a command that is sent now. Resolves to its reply, or to undefined after the time limit or dropAll. */
  add(timeoutMs: number): Promise<RedisReply | undefined>;
  /** Hands a reply to the oldest command, also to one that no longer waits. Returns false if there is none. */
  settleOldest(reply: RedisReply): boolean;
  dropAll(): void;
  count(): number;
  /** Returns when the oldest command was sent; undefined: there is none. */
  oldestSentAt(): number | undefined;
  /** Returns whether a command has waited for 50 ms, and no reply has arrived since. */
  isSlow(): boolean;
}

interface Command {
  readonly sentAt: number;
  readonly settle: (reply: RedisReply | undefined) => void;
}

const SLOW_MS = 50;

/** @param now monotonic clock, in milliseconds */
export function createPendingCommands(now: () => number): PendingCommands {
  // A set keeps the order, and removing the first takes constant time.
  const commands = new Set<Command>();
  const state = { isSlow: false, isWatching: false };

  /** Not by the age alone: a process that was busy has not read the replies yet. */
  async function watch(command: Command): Promise<void> {
    state.isWatching = true;
    await waitFor(undefined, SLOW_MS);
    state.isWatching = false;
    if (commands.has(command)) state.isSlow = true;
    else watchOldest();
  }

  function watchOldest(): void {
    const [oldest] = commands;
    if (oldest !== undefined && !state.isWatching) void watch(oldest);
  }

  return {
    add(timeoutMs) {
      const reply = new Promise<RedisReply | undefined>((resolve) => {
        commands.add({ sentAt: now(), settle: resolve });
      });
      watchOldest();
      return waitFor(reply, timeoutMs);
    },
    settleOldest(reply) {
      const [oldest] = commands;
      if (oldest === undefined) return false;
      commands.delete(oldest);
      oldest.settle(reply);
      state.isSlow = false;
      return true;
    },
    dropAll() {
      for (const { settle } of commands) settle(undefined);
      commands.clear();
    },
    count: () => commands.size,
    oldestSentAt() {
      const [oldest] = commands;
      return oldest?.sentAt;
    },
    isSlow: () => state.isSlow,
  };
}
