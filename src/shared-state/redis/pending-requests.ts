import { setImmediate } from "node:timers";

/** Requests to the readers of other replicas that are not answered yet. */
export interface PendingRequests {
  /**
   * Adds a request. Resolves to undefined if it is not accepted within 250 ms, if the reader falls silent after that, or
   * after the time limit. undefined: there are too many already.
   */
  add(
    topic: string,
    timeoutMs: number,
  ): { readonly id: number; readonly reply: Promise<string | undefined> } | undefined;
  /** Notes that the reader works on a request. */
  accept(id: number): void;
  settle(id: number, text: string | undefined): void;
  /** Settles all requests of a topic, or all, without an answer. */
  giveUp(topic?: string): void;
  /** Returns whether any request was accepted. */
  hasAccepted(): boolean;
}

/** A reader that Redis has handed a request, and that does not accept it in this time, is too busy to be waited for. */
const ACCEPT_TIMEOUT_MS = 250;
/** How often a reader tells its requesters that it still works on their requests. */
export const ACCEPT_INTERVAL_MS = 200;
/** A reader that has accepted a request and is silent for this long is gone. */
const ACCEPT_EXPIRY_MS = 600;
const MAX_PENDING_REQUESTS = 128;

interface PendingRequest {
  readonly topic: string;
  readonly expiresAt: number;
  readonly settle: (text: string | undefined) => void;
  timer: NodeJS.Timeout;
  isAccepted: boolean;
}

/** @param now monotonic clock, in milliseconds */
export function createPendingRequests(now: () => number): PendingRequests {
  const requests = new Map<number, PendingRequest>();
  let lastId = 0;

  return {
    add(topic, timeoutMs) {
      if (requests.size >= MAX_PENDING_REQUESTS) return undefined;
      lastId += 1;
      const id = lastId;
      const reply = new Promise<string | undefined>((resolve) => {
        const settle = (text: string | undefined): void => {
          clearTimeout(request.timer);
          requests.delete(id);
          resolve(text);
        };
        // What has arrived while this process was busy is read before the wait ends.
        const timer = setTimeout(() => setImmediate(() => !request.isAccepted && settle(undefined)), ACCEPT_TIMEOUT_MS);
        const request: PendingRequest = {
          topic,
          expiresAt: now() + timeoutMs,
          settle,
          timer: timer.unref(),
          isAccepted: false,
        };
        requests.set(id, request);
      });
      return { id, reply };
    },
    accept(id) {
      const request = requests.get(id);
      if (request === undefined) return;
      request.isAccepted = true;
      clearTimeout(request.timer);
      const leftMs = Math.min(ACCEPT_EXPIRY_MS, request.expiresAt - now());
      request.timer = setTimeout(() => setImmediate(request.settle, undefined), leftMs).unref();
    },
    settle: (id, text) => requests.get(id)?.settle(text),
    giveUp(topic) {
      for (const request of [...requests.values()])
        if (topic === undefined || request.topic === topic) request.settle(undefined);
    },
    hasAccepted() {
      for (const { isAccepted } of requests.values()) if (isAccepted) return true;
      return false;
    },
  };
}
