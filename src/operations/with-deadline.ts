import { setMaxListeners } from "node:events";
import { ServiceError } from "../errors.js";
import { type AbortScope, createAbortScope } from "../resilience/abort-scope.js";
import type { FairQuota } from "../resilience/fair-quota.js";
import { isPromise } from "../resilience/maybe-async.js";
import type { CachePolicy, CallContext, Operation, PublicError } from "./operation.js";

/**
 * Limits an operation to the caller's timeout and the configured maximum, whichever is shorter. The context's signal fires
 * when the time is over and when the caller disconnects. An operation that responds synchronously costs neither a timer
 * nor a signal nor a slot.
 * @param maxTimeoutMs maximum duration of any call, in milliseconds
 * @param callerQuota slots of the calls that do not respond synchronously
 * @throws ServiceError DEADLINE_EXCEEDED; OVERLOADED when the call has to wait and no slot is free
 */
export function withDeadline<Request, Response>(
  operation: Operation<Request, Response>,
  { maxTimeoutMs, callerQuota }: { readonly maxTimeoutMs: number; readonly callerQuota: FairQuota },
): Operation<Request, Response> {
  return (request, context) => {
    const timeoutMs = Math.min(context.timeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    if (timeoutMs <= 0) throw new ServiceError("DEADLINE_EXCEEDED", "the deadline passed before the call arrived");
    const deadlineContext = new DeadlineContext(context);
    let isSettled = true;
    try {
      const response = operation(request, deadlineContext);
      if (!isPromise(response)) return response;
      const releaseSlot = callerQuota.tryAcquire(context.caller);
      if (releaseSlot === undefined) {
        response.catch(() => {});
        throw new ServiceError("OVERLOADED", "too many calls are waiting here", { retryAfterSeconds: 1 });
      }
      isSettled = false;
      return raceDeadline(response, deadlineContext, timeoutMs).finally(releaseSlot);
    } finally {
      if (isSettled) deadlineContext.end();
    }
  };
}

async function raceDeadline<Response>(
  response: Promise<Response>,
  deadlineContext: DeadlineContext,
  timeoutMs: number,
): Promise<Response> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new ServiceError("DEADLINE_EXCEEDED", `no answer within ${Math.round(timeoutMs)} ms`));
      deadlineContext.end();
    }, timeoutMs);
  });
  try {
    return await Promise.race([response, timeout]);
  } finally {
    clearTimeout(timer);
    // Aborts work that the response did not wait for.
    deadlineContext.end();
  }
}

/**
 * A call context whose signal also fires at the end of the call. A class, because one is created per request: unread
 * getters cost nothing.
 */
class DeadlineContext implements CallContext {
  private scope: AbortScope | undefined = undefined;
  private isEnded = false;

  constructor(private readonly innerContext: CallContext) {}

  get requestId(): string {
    return this.innerContext.requestId;
  }

  get timeoutMs(): number | undefined {
    return this.innerContext.timeoutMs;
  }

  get caller(): string {
    return this.innerContext.caller;
  }

  get takenMs(): number {
    return this.innerContext.takenMs;
  }

  set takenMs(takenMs: number) {
    this.innerContext.takenMs = takenMs;
  }

  addLogFields(fields: Parameters<CallContext["addLogFields"]>[0]): void {
    this.innerContext.addLogFields(fields);
  }

  setCachePolicy(policy: CachePolicy): void {
    this.innerContext.setCachePolicy(policy);
  }

  setResponseMetadata(entries: Parameters<CallContext["setResponseMetadata"]>[0]): void {
    this.innerContext.setResponseMetadata(entries);
  }

  addWarning(text: string): void {
    this.innerContext.addWarning(text);
  }

  countAsRequests(count: number): Promise<void> | undefined {
    return this.innerContext.countAsRequests(count);
  }

  describeFailure(error: unknown): PublicError {
    return this.innerContext.describeFailure(error);
  }

  get signal(): AbortSignal {
    if (this.scope === undefined) {
      this.scope = createAbortScope(this.innerContext.signal);
      // One call starts many requests, each of which adds a listener.
      setMaxListeners(0, this.scope.signal);
    }
    if (this.isEnded) this.scope.cancel();
    return this.scope.signal;
  }

  end(): void {
    this.isEnded = true;
    this.scope?.cancel();
  }
}
