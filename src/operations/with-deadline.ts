import { ServiceError } from "../errors.js";
import type { FairQuota } from "../resilience/fair-quota.js";
import { isPromise } from "../resilience/maybe-async.js";
import type { CallContext, Operation } from "./operation.js";

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
    let isSettled = true;
    try {
      const response = operation(request, context);
      if (!isPromise(response)) return response;
      const releaseSlot = callerQuota.tryAcquire(context.caller);
      if (releaseSlot === undefined) {
        response.catch(() => {});
        throw new ServiceError("OVERLOADED", "too many calls are waiting here", { retryAfterSeconds: 1 });
      }
      isSettled = false;
      return raceDeadline(response, context, timeoutMs).finally(releaseSlot);
    } finally {
      if (isSettled) context.endWork();
    }
  };
}

async function raceDeadline<Response>(
  response: Promise<Response>,
  context: CallContext,
  timeoutMs: number,
): Promise<Response> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new ServiceError("DEADLINE_EXCEEDED", `no answer within ${Math.round(timeoutMs)} ms`));
      context.endWork();
    }, timeoutMs);
  });
  try {
    return await Promise.race([response, timeout]);
  } finally {
    clearTimeout(timer);
    // Aborts work that the response did not wait for.
    context.endWork();
  }
}
