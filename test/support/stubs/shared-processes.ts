import { type HubChannel, limitBacklog, type MemberChannel } from "../../../src/shared-state/channel.js";
import { createSharedStateHub, type SharedStateHubOptions } from "../../../src/shared-state/hub.js";
import { createSharedStateMember } from "../../../src/shared-state/member.js";
import type { SharedState } from "../../../src/shared-state/shared-state.js";

/** A process that shares state with others, without being a process. */
export interface SharedProcess {
  readonly sharedState: SharedState;
  /** Neither reads nor writes messages from now on; they wait, as with SIGSTOP. */
  stop(): void;
  /** Handles what waits, as with SIGCONT. */
  resume(): void;
  /** Leaves for ever, as with SIGKILL. */
  exit(): void;
}

export interface SharedProcesses {
  /** Starts another process. Its monotonic clock is ahead of the shared one by this time. */
  start(clockOffsetMs?: number, onSuspend?: () => void): SharedProcess;
  close(): void;
}

/** Connects processes in memory. Messages arrive in a later microtask. @param now the shared clock, in milliseconds */
export function createSharedProcesses(
  now: () => number = Date.now,
  options: Pick<SharedStateHubOptions, "onPublish"> = {},
): SharedProcesses {
  const hub = createSharedStateHub({ now, ...options });
  return {
    start(clockOffsetMs = 0, onSuspend) {
      const state: { isStopped: boolean; isGone: boolean; waiting: (() => void)[] } = {
        isStopped: false,
        isGone: false,
        waiting: [],
      };
      /** Runs in or out of the process unless it is stopped. */
      const pass = (deliver: () => void): void => {
        if (state.isStopped) state.waiting.push(deliver);
        else queueMicrotask(() => (state.isStopped ? state.waiting.push(deliver) : state.isGone || deliver()));
      };
      const connect = <Out extends Parameters<HubChannel["send"]>[0] | Parameters<MemberChannel["send"]>[0]>() => {
        const listeners: ((message: Out) => void)[] = [];
        const send = limitBacklog<Out>((message, onWritten) => {
          if (state.isGone) throw new Error("gone");
          pass(() => {
            onWritten();
            for (const listener of listeners) listener(message);
          });
        });
        return { send, listeners };
      };
      const toMember = connect<Parameters<HubChannel["send"]>[0]>();
      const toHub = connect<Parameters<MemberChannel["send"]>[0]>();
      const removeMember = hub.addMember(
        { send: toMember.send, listen: (listener) => void toHub.listeners.push(listener) },
        onSuspend,
      );
      const sharedState = createSharedStateMember({
        channel: { send: toHub.send, listen: (listener) => void toMember.listeners.push(listener) },
        clock: { toShared: (ms) => ms - clockOffsetMs, toMonotonic: (ms) => ms + clockOffsetMs },
        now: () => now() + clockOffsetMs,
      });
      return {
        sharedState,
        stop() {
          state.isStopped = true;
        },
        resume() {
          state.isStopped = false;
          for (const deliver of state.waiting.splice(0)) deliver();
        },
        exit() {
          state.isGone = true;
          removeMember();
        },
      };
    },
    close: hub.close,
  };
}
