import { raceAbort } from "./abort-scope.js";
import { joinWaiters, type Requester, Waiters } from "./waiters.js";

interface InFlightCall<T> {
  readonly result: Promise<T>;
  readonly waiters: Waiters;
}

/**
 * Deduplicates concurrent calls for the same key. `fetchMethod` of lru-cache does not: the signal of its call is that of the
 * first waiter, and here the call goes on until the last one has left.
 */
export class SingleFlight<T> {
  readonly #closing: AbortSignal;
  readonly #inFlight = new Map<string, InFlightCall<T>>();

  /** @param closing aborts all calls */
  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  /** Returns whether a call is in flight that others can join. @param waiters those of one call. Default: of any */
  isInFlight(key: string, waiters?: Waiters): boolean {
    const call = this.#findCall(key);
    return call !== undefined && (waiters === undefined || waiters === call.waiters);
  }

  /** Lets nobody join the call in flight any more: what it reads is outdated. */
  forget(key: string): void {
    this.#inFlight.delete(key);
  }

  /**
   * Returns the result of the call in flight for this key, or starts one, whose work gets all that wait for it: it is to end
   * when their signal aborts. Rejects at once when the requester's own signal aborts.
   */
  async run(key: string, requester: Requester, work: (waiters: Waiters) => Promise<T>): Promise<T> {
    const { signal } = requester;
    signal.throwIfAborted();
    const existing = this.#findCall(key);
    const waiters = existing?.waiters ?? new Waiters(this.#closing);
    const leave = joinWaiters(waiters, requester);
    try {
      const call = existing ?? this.#start(key, waiters, work);
      return await raceAbort(call.result, signal);
    } finally {
      leave();
    }
  }

  /** A call that is being aborted cannot be joined. */
  #findCall(key: string): InFlightCall<T> | undefined {
    const call = this.#inFlight.get(key);
    return call?.waiters.signal.aborted ? undefined : call;
  }

  #start(key: string, waiters: Waiters, work: (waiters: Waiters) => Promise<T>): InFlightCall<T> {
    const call = { result: work(waiters), waiters };
    this.#inFlight.set(key, call);
    const end = (): void => {
      if (this.#inFlight.get(key) === call) this.#inFlight.delete(key);
      waiters.close();
    };
    call.result.then(end, end);
    return call;
  }
}
