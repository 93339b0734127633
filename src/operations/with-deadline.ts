import { setMaxListeners } from "node:events";
import { ServiceError } from "../errors.js";
import type { FairQuota } from "../resilience/fair-quota.js";
import type { CallContext, Operation } from "./operation.js";

/** How calls may wait. */
export interface DeadlineOptions {
  /** The longest time that any answer may take, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Where those wait that are not answered at once. */
  readonly callerQuota: FairQuota;
}

/**
 * Ends an operation's wait when the caller's deadline or ours has passed, whichever is first, whatever the operation
 * still waits for. Its signal fires then, and when the caller leaves. An operation that answers at once pays for neither
 * timer nor signal, and needs no place.
 * @throws ServiceError DEADLINE_EXCEEDED; OVERLOADED where it would have to wait and too many do
 */
export function withDeadline<Request, Response>(
  operation: Operation<Request, Response>,
  { maxTimeoutMs, callerQuota }: DeadlineOptions,
): Operation<Request, Response> {
  return (request, context) => {
    const timeoutMs = Math.min(context.timeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    if (timeoutMs <= 0) throw new ServiceError("DEADLINE_EXCEEDED", "the deadline had passed when the call came");
    const ending = new DeadlineContext(context);
    let isOver = true;
    try {
      const answer = operation(request, ending);
      if (!(answer instanceof Promise)) return answer;
      const leave = callerQuota.tryAcquire(context.caller);
      if (leave === undefined) {
        answer.catch(() => {});
        throw new ServiceError("OVERLOADED", "too many calls are waiting here", { retryAfterSeconds: 1 });
      }
      isOver = false;
      return raceDeadline(answer, ending, timeoutMs).finally(leave);
    } finally {
      if (isOver) ending.end();
    }
  };
}

async function raceDeadline<Response>(
  answer: Promise<Response>,
  ending: DeadlineContext,
  timeoutMs: number,
): Promise<Response> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new ServiceError("DEADLINE_EXCEEDED", `no answer within ${Math.round(timeoutMs)} ms`));
      ending.end();
    }, timeoutMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    // What the answer did not wait for is of no use to anyone now.
    ending.end();
  }
}

/**
 * A call's context whose signal fires at an end of our own too. A class, since there is one for each request: its
 * getters cost nothing where nobody reads them.
 */
class DeadlineContext implements CallContext {
  readonly requestId: string;
  readonly timeoutMs: number | undefined;
  private controller: AbortController | undefined = undefined;
  private isEnded = false;

  constructor(private readonly innerContext: CallContext) {
    this.requestId = innerContext.requestId;
    this.timeoutMs = innerContext.timeoutMs;
  }

  get caller(): string {
    return this.innerContext.caller;
  }

  get addLogFields(): CallContext["addLogFields"] {
    return this.innerContext.addLogFields;
  }

  get setCachePolicy(): CallContext["setCachePolicy"] {
    return this.innerContext.setCachePolicy;
  }

  get setResponseMetadata(): CallContext["setResponseMetadata"] {
    return this.innerContext.setResponseMetadata;
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      // One call asks many others, each of which listens.
      setMaxListeners(0, this.controller.signal);
      // Not AbortSignal.any: on Node.js 20 its signal is never collected once a listener stays on it.
      if (this.isEnded || this.innerContext.signal.aborted) this.controller.abort();
      else this.innerContext.signal.addEventListener("abort", this.onCallerAbort);
    }
    return this.controller.signal;
  }

  end(): void {
    this.isEnded = true;
    if (this.controller === undefined) return;
    this.innerContext.signal.removeEventListener("abort", this.onCallerAbort);
    this.controller.abort();
  }

  private readonly onCallerAbort = (): void => this.controller?.abort();
}
