import type { Worker } from "node:cluster";
import { monotonicNow } from "../resilience/clock.js";
import { type HubChannel, limitBacklog, type MemberChannel, type ToHub, type ToMember } from "./channel.js";
import { createSharedStateMember } from "./member.js";
import type { SharedClock, SharedState } from "./shared-state.js";

// The IPC channel between the primary and a worker also carries other messages: `type` tells them apart.

/** Creates the primary's end of the channel to a worker. */
export function createWorkerChannel(worker: Worker): HubChannel {
  return {
    send: limitBacklog<ToMember>((message, onWritten) => {
      if (!worker.isConnected()) throw new Error("the worker is gone");
      worker.send(message, undefined, onWritten);
    }),
    listen: (onMessage) =>
      void worker.on("message", (message: ToHub) => {
        if (message.type === "shared-state") onMessage(message);
      }),
  };
}

/**
 * Joins the state that the workers share, in a worker.
 * @param clock default: one that only the processes of this machine have in common
 */
export function joinOverIpc(clock: SharedClock = createMachineClock()): SharedState {
  const channel: MemberChannel = {
    send: limitBacklog<ToHub>((message, onWritten) => {
      if (process.send === undefined || !process.connected) throw new Error("the primary is gone");
      process.send(message, undefined, undefined, onWritten);
    }),
    listen: (onMessage) =>
      void process.on("message", (message: ToMember) => {
        if (message.type === "shared-state") onMessage(message);
      }),
  };
  return createSharedStateMember({ channel, clock, now: monotonicNow });
}

const CLOCK_SAMPLES = 5;

/**
 * Creates the clock that all processes of one machine share: the monotonic clock of the operating system, on which
 * `performance.now()` runs too. Unix time is not used: processes that start before and after it is set would disagree.
 */
export function createMachineClock(
  readMonotonic = monotonicNow,
  readShared = () => Number(process.hrtime.bigint()) / 1e6,
): SharedClock {
  const samples = Array.from({ length: CLOCK_SAMPLES }, () => {
    const before = readShared();
    const monotonic = readMonotonic();
    const after = readShared();
    return { offsetMs: monotonic - (before + after) / 2, uncertaintyMs: after - before };
  });
  // The process may have been suspended between two readings: states would seem younger than they are.
  const { offsetMs } = samples.reduce((best, sample) => (sample.uncertaintyMs < best.uncertaintyMs ? sample : best));
  return {
    toShared: (monotonicMs) => monotonicMs - offsetMs,
    toMonotonic: (sharedMs) => sharedMs + offsetMs,
  };
}
