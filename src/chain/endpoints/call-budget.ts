import { ServiceError } from "../../errors.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import { TokenBucket } from "../../resilience/token-bucket.js";
import type { RpcCall } from "../chain-client.js";

/** What happened to a request that the budget did not permit at once. */
export type BudgetOutcome = "waited" | "refused";

/** How long a request may wait, in milliseconds: half of the default deadline, so that the rest suffices for the request. */
const MAX_WAIT_MS = 5_000;
/** The burst, in seconds' worth of calls: small, since providers throttle by the second. */
const BURST_SECONDS = 0.5;
/** Share of the burst that calls in the background leave to those that a caller waits for. */
const BACKGROUND_RESERVE = 0.5;

/**
 * The calls per second to one endpoint, since a provider throttles or bills each separately. A batch counts as the calls in
 * it, as providers count. One that is larger than what is left is sent as a whole, and the next one waits longer.
 */
export class EndpointCallBudget {
  readonly #options;
  readonly #bucket: TokenBucket;
  readonly #reserved: number;
  /** The turn of one request: the next waits until it has taken its calls. */
  readonly #turn = new FairSemaphore(1);
  #queuedCalls = 0;

  constructor(options: {
    /** Slug of the chain, for error messages. */
    readonly slug: string;
    readonly callsPerSecond: number;
    /** Called when a request has to wait, or is refused. */
    readonly onLimited: (outcome: BudgetOutcome) => void;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    /** Resolves after a time in milliseconds, or when the signal aborts. */
    readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  }) {
    const { callsPerSecond: perSecond, now } = options;
    const burst = Math.max(1, perSecond * BURST_SECONDS);
    this.#options = options;
    this.#bucket = new TokenBucket({ perSecond, burst, now });
    this.#reserved = (burst - 1) * BACKGROUND_RESERVE;
  }

  /** Returns whether a call that a caller waits for would be refused now. */
  isExhausted(): boolean {
    return this.waitMs(false) > MAX_WAIT_MS;
  }

  /** Returns how long a call would wait, in milliseconds. */
  waitMs(isBackground: boolean): number {
    const queuedMs = (this.#queuedCalls * 1000) / this.#options.callsPerSecond;
    return this.#bucket.waitMs(isBackground ? this.#reserved : 0) + queuedMs;
  }

  /**
   * Takes calls from the budget, and waits until they may be sent. Callers come in the order of their arrival, and calls in
   * the background when callers have left enough.
   * @param onWait called before it waits, and again where callers prolong that, with the time in milliseconds
   * @throws ServiceError OVERLOADED, at once, when the wait would be too long; in the background, when it was
   */
  async acquire(calls: readonly RpcCall[], signal: AbortSignal, onWait?: (ms: number) => void): Promise<void> {
    const isBackground = calls.some((call) => call.isBackground === true);
    const waitMs = this.waitMs(isBackground);
    if (waitMs > MAX_WAIT_MS) this.#refuse(waitMs);
    if (waitMs > 0) this.#options.onLimited("waited");
    if (isBackground) await this.#waitInBackground(signal, onWait);
    else if (waitMs > 0) {
      onWait?.(waitMs);
      return this.#waitInQueue(calls.length, signal);
    }
    if (!signal.aborted) this.#bucket.take(calls.length);
  }

  async #waitInQueue(calls: number, signal: AbortSignal): Promise<void> {
    this.#queuedCalls += calls;
    try {
      await this.#turn.acquire("", signal, async () => {
        for (let ms = this.#bucket.waitMs(); ms > 0 && !signal.aborted; ms = this.#bucket.waitMs())
          await this.#options.sleep(ms, signal);
        if (!signal.aborted) this.#bucket.take(calls);
      });
    } catch (error) {
      // Where the caller has left meanwhile, the request reports that.
      if (error !== signal.reason) throw error;
    } finally {
      this.#queuedCalls -= calls;
    }
  }

  async #waitInBackground(signal: AbortSignal, onWait?: (ms: number) => void): Promise<void> {
    const { callsPerSecond, now, sleep } = this.#options;
    const startedAt = now();
    for (let ms = this.waitMs(true); ms > 0 && !signal.aborted; ms = this.waitMs(true)) {
      if (now() - startedAt > MAX_WAIT_MS) this.#refuse(MAX_WAIT_MS);
      const sleepMs = Math.max(ms, 1000 / callsPerSecond);
      onWait?.(sleepMs);
      await sleep(sleepMs, signal);
    }
  }

  #refuse(waitMs: number): never {
    const { slug, onLimited } = this.#options;
    onLimited("refused");
    const message =
      `the calls per second that the operator permits to the RPC endpoints of ${slug} are used up: try again later; ` +
      "the operator can raise RPC_BUDGET or add an endpoint";
    throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
  }
}
