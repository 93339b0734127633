import { ServiceError } from "../errors.js";
import type { Operation } from "./operation.js";

/**
 * Ends an operation's wait when the caller's deadline or ours has passed, whichever is first, whatever the operation
 * still waits for. Its signal fires then, and when the caller leaves.
 * @param longestMs the longest time that any answer may take
 */
export function withDeadline<Request, Response>(
  operation: Operation<Request, Response>,
  longestMs: number,
): Operation<Request, Response> {
  return async (request, context) => {
    const timeoutMs = Math.min(context.timeoutMs ?? longestMs, longestMs);
    if (timeoutMs <= 0) throw new ServiceError("DEADLINE_EXCEEDED", "the deadline had passed when the call came");
    const ending = new AbortController();
    const signal = AbortSignal.any([context.signal, ending.signal]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new ServiceError("DEADLINE_EXCEEDED", `no answer within ${Math.round(timeoutMs)} ms`));
        ending.abort();
      }, timeoutMs);
    });
    try {
      return await Promise.race([
        operation(request, { ...context, note: (facts) => context.note(facts), signal }),
        late,
      ]);
    } finally {
      clearTimeout(timer);
      // What the answer did not wait for is of no use to anyone now.
      ending.abort();
    }
  };
}
