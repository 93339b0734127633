import { createAbortScope } from "../../resilience/abort-scope.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { getRpcResult } from "../chain-client.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/common-calls.js";
import { computePatienceMs } from "./attempt-plan.js";
import type { Upstream } from "./endpoint-attempt.js";
import { type EventLoopDelay, startStopwatch } from "./event-loop-delay.js";
import { parseHead } from "./head-tracker.js";

/** Reads that no caller waits for. They tell how an endpoint is. */
export interface BackgroundProbes {
  /** Returns the latest block of an endpoint; undefined: it is not asked now. Records its health and latency. */
  readLatestBlock(upstream: Upstream): Promise<unknown>;
  /** Reads the chain id of an endpoint in cooldown, which ends if that succeeds. One at a time; never rejects. */
  readChainId(upstream: Upstream): Promise<void>;
}

export interface BackgroundProbesOptions {
  /** Returns whether an endpoint can take no calls in the background now. */
  readonly isBusy: (upstream: Upstream) => boolean;
  readonly closing: AbortSignal;
  readonly eventLoopDelay: EventLoopDelay;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** Bounds of the timeout. The upper one is below the interval at which heads are read. */
const MIN_PROBE_TIMEOUT_MS = 5_000;
const MAX_PROBE_TIMEOUT_MS = 9_000;

export function createBackgroundProbes(options: BackgroundProbesOptions): BackgroundProbes {
  const { isBusy, closing, eventLoopDelay, now } = options;
  /** Endpoints whose chain id is being read. */
  const pending = new Set<Upstream>();

  return {
    async readLatestBlock(upstream) {
      const { endpoint, breaker } = upstream;
      if (breaker.isCoolingDown() || isBusy(upstream)) return undefined;
      const scope = createAbortScope(closing, computeTimeoutMs(upstream));
      const endMeasurement = eventLoopDelay.measure();
      const ageMs = startStopwatch(now, eventLoopDelay);
      let hasWaited = false;
      const onWait = (): void => {
        hasWaited = true;
      };
      try {
        const calls = [{ ...LATEST_BLOCK_CALL, isBackground: true }];
        const [outcome] = await endpoint.sendBatch(calls, scope.signal, onWait);
        const block = getRpcResult(outcome);
        breaker.recordProbe(parseHead(block) !== undefined, hasWaited ? undefined : ageMs());
        return block;
      } catch (error) {
        // Thrown before the request was sent: it says nothing about the endpoint.
        if (!closing.aborted && error instanceof UpstreamError) breaker.recordProbe(false);
        // Only a requested cooldown counts: a failed head read says little about other calls.
        startRequestedCooldown(upstream, error);
        throw error;
      } finally {
        endMeasurement();
        scope.cancel();
      }
    },
    async readChainId(upstream) {
      if (pending.has(upstream)) return;
      pending.add(upstream);
      const attempt = upstream.breaker.beginAttempt();
      const scope = createAbortScope(closing, computeTimeoutMs(upstream));
      try {
        // Without calls only the chain id is read.
        await upstream.endpoint.sendBatch([], scope.signal);
        attempt.recordSuccess(undefined);
      } catch (error) {
        attempt.ignore();
        startRequestedCooldown(upstream, error);
      } finally {
        pending.delete(upstream);
        scope.cancel();
      }
    },
  };
}

function startRequestedCooldown({ breaker }: Upstream, error: unknown): void {
  if (error instanceof UpstreamError && error.retryAfterMs !== undefined) breaker.startCooldown(error.retryAfterMs);
}

function computeTimeoutMs({ breaker }: Upstream): number {
  return Math.min(Math.max(computePatienceMs(breaker.latencyP95Ms()), MIN_PROBE_TIMEOUT_MS), MAX_PROBE_TIMEOUT_MS);
}
