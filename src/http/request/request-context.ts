import { randomFillSync } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { type ErrorReason, ServiceError } from "../../errors.js";
import type { CachePolicy, CallContext, Operation, PublicError } from "../../operations/operation.js";
import { ABANDONED, withTimeout } from "../../resilience/abort-scope.js";
import { createTurnClock } from "../../resilience/clock.js";
import type { FairQuota } from "../../resilience/fair-quota.js";
import type { FairScheduler } from "../../resilience/fair-scheduler.js";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
import { identifyCaller } from "./caller.js";
import { toCodeName, toServiceError } from "./error-mapping.js";
import { assertValidResponseMetadata, buildCacheHeaders, formatWarning } from "./response-headers.js";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

export type Protocol = "grpc" | "grpc-web" | "connect" | "connect-get" | "rest";

type LogFields = Readonly<Record<string, string | number | boolean>>;

/** The access log entry of a request. It holds no URL and no query, since those can carry API keys. */
export interface AccessLogEntry {
  readonly requestId: string;
  readonly protocol: Protocol;
  /** Full name of service and method, or the path of a document; empty if neither applies. */
  readonly operation: string;
  /** `ok` or the name of a Connect code; `canceled` if the caller left before the response was complete. */
  readonly code: string;
  /** Milliseconds from the turn of the event loop that found the request to the end of the response. */
  readonly durationMs: number;
  /** Whether it was a stream: its caller decides how long it takes. */
  readonly isStream?: boolean | undefined;
  /** What the operation added. It is not logged under the names above. Memoizable if it is frozen. */
  readonly fields?: LogFields | undefined;
}

/** @param reason public reason of the rejection or failure; empty for none */
export type AccessLog = (entry: AccessLogEntry, reason: ErrorReason | "") => void;

/** Traces calls of operations, for example as spans. */
export interface RequestTracer {
  /**
   * Starts the trace of a call; undefined if the call is not sampled. Its headers may carry the trace context of the
   * caller.
   */
  startTrace(call: Pick<RequestContext, "protocol" | "operation" | "headers" | "startedAt">): RequestSpan | undefined;
}

export interface RequestSpan {
  /** Runs work so that everything it starts belongs to the trace. */
  run<T>(work: () => T): T;
  /** @param res undefined if the call had no response of its own */
  end(entry: AccessLogEntry, reason: ErrorReason | "", res: HttpResponse | undefined): void;
}

/** Receives the cause of an INTERNAL response. */
export type InternalErrorReporter = (error: unknown, requestId: string) => void;

/** Answers a call with the message or the error of its operation. */
export interface CallResponder {
  succeed(message: Message): void;
  fail(error: unknown): void;
}

/** What a call takes in all for each byte of its message: 12 ms where 12 KB ask for a batch of a hundred expensive quotes. */
const EXPECTED_MS_PER_BYTE = 1e-3;

const NO_HEADERS: readonly string[] = [];
const readTurnTime = createTurnClock(() => performance.now());

/** Options that all requests share. */
export interface RequestContextOptions {
  readonly log: AccessLog;
  readonly onInternalError: InternalErrorReporter;
  /** Divides the time of the event loop among callers. */
  readonly eventLoop: FairScheduler;
  /** Maximum duration of a unary call, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Slots of the unary calls that do not respond synchronously. */
  readonly pendingCalls: FairQuota;
  /** Reads the address of the caller from X-Forwarded-For: set it behind a proxy that writes this header. */
  readonly trustProxy: boolean;
  /** Base of the links to the documentation in errors. Undefined: errors have none. */
  readonly docsUrl?: string | undefined;
  readonly tracer?: RequestTracer | undefined;
  /** Undefined: there is no rate limit. */
  readonly countMoreRequests?: ((context: RequestContext, requests: number) => Promise<void>) | undefined;
}

/**
 * The state of one request, which is also the call context of its operation and its entry in the access log. Its
 * getters create what few requests need on first access, at no cost for the others.
 */
export class RequestContext implements CallContext, AccessLogEntry {
  protocol: Protocol = "rest";
  operation = "";
  code = "unknown";
  /** Reason of the failure; empty if there is none or only a code of the protocol. */
  reason: ErrorReason | "" = "";
  /** Whether the request was cut off because it is malformed. The log then shows its code instead of `canceled`. */
  isMalformed = false;
  /** Whether it is a streaming call that was admitted. */
  isStream = false;
  /** Rate limit headers of every response: names and values alternate. Empty if no limit applies. */
  rateLimitHeaders: readonly string[] = NO_HEADERS;
  /** Whether the request ended before its response did. */
  isAborted = false;
  /** The response; undefined on a stream. */
  res: HttpResponse | undefined = undefined;
  /** On a stream: whether the complete response has been written. */
  hasResponded = false;
  private deadlineAt = Number.POSITIVE_INFINITY;
  private cachePolicy: CachePolicy | undefined = undefined;
  private responseMetadata: Readonly<Record<string, string>> | undefined = undefined;
  fields: LogFields | undefined = undefined;
  durationMs = 0;
  /** Time that it has taken of the event loop while others waited, and is about to take, in milliseconds. */
  takenMs = 0;
  private id: string | undefined = undefined;
  private callerId: string | undefined = undefined;
  private callerController: AbortController | undefined = undefined;
  private workController: AbortController | undefined = undefined;
  private isWorkOver = false;
  private trace: RequestSpan | undefined = undefined;
  private hasEnded = false;
  private endListener: (() => void) | undefined = undefined;
  readonly startedAt = readTurnTime();

  constructor(
    readonly headers: IncomingHttpHeaders,
    private readonly socket: { readonly remoteAddress?: string | undefined } | undefined,
    private readonly options: RequestContextOptions,
  ) {}

  /** The id that the request carries if it is safe to log, or a new one. */
  get requestId(): string {
    if (this.id === undefined) {
      const given = this.headers["x-request-id"];
      this.id = typeof given === "string" && REQUEST_ID_PATTERN.test(given) ? given : createRequestId();
    }
    return this.id;
  }

  /** Identity of the caller, as `identifyCaller` returns it. */
  get caller(): string {
    if (this.callerId === undefined) {
      const forwardedFor = this.options.trustProxy ? this.headers["x-forwarded-for"] : undefined;
      this.callerId = identifyCaller(readAddress(this.socket), forwardedFor?.toString());
    }
    return this.callerId;
  }

  get docsUrl(): string | undefined {
    return this.options.docsUrl;
  }

  /** Aborts when the caller is gone. */
  get callerSignal(): AbortSignal {
    this.callerController ??= createController(this.isAborted);
    return this.callerController.signal;
  }

  get signal(): AbortSignal {
    this.workController ??= createController(this.isAborted || this.isWorkOver);
    return this.workController.signal;
  }

  remainingMs(): number {
    return this.deadlineAt - performance.now();
  }

  addLogFields(fields: LogFields): void {
    this.fields = this.fields === undefined ? fields : { ...this.fields, ...fields };
  }

  setCachePolicy(policy: CachePolicy): void {
    this.cachePolicy = policy;
  }

  setResponseMetadata(entries: Readonly<Record<string, string>>): void {
    assertValidResponseMetadata(entries);
    this.responseMetadata = this.responseMetadata === undefined ? entries : { ...this.responseMetadata, ...entries };
  }

  addWarning(text: string): void {
    const { warning: earlier } = this.responseMetadata ?? {};
    const warning = earlier === undefined ? formatWarning(text) : `${earlier}, ${formatWarning(text)}`;
    this.responseMetadata = { ...this.responseMetadata, warning };
  }

  /** Whether the operation allows caches to keep the response. */
  get isCacheable(): boolean {
    return this.cachePolicy !== undefined && this.cachePolicy !== "private";
  }

  /** Returns the response metadata of the operation as headers of a successful response: names and values alternate. */
  buildResponseHeaders(): readonly string[] {
    const cacheHeaders = buildCacheHeaders(this.cachePolicy);
    if (this.responseMetadata === undefined) return cacheHeaders;
    const headers = [...cacheHeaders];
    for (const name in this.responseMetadata) headers.push(name, this.responseMetadata[name] ?? "");
    return headers;
  }

  countAsRequests(count: number): Promise<void> | undefined {
    return this.options.countMoreRequests?.(this, count);
  }

  describeFailure(error: unknown): PublicError {
    const { reason, message, field = "" } = this.reportFailure(error);
    return { code: toCodeName(reason), message, reason, field };
  }

  /**
   * Does a part of the work of this request: at once, or when it is its caller's turn.
   * @param unreadBytes what the work has to read. Default: nothing
   */
  continueInTurn(work: () => void, unreadBytes = 0): void {
    this.takenMs += unreadBytes * EXPECTED_MS_PER_BYTE;
    this.options.eventLoop.continue(this, work);
  }

  /**
   * Runs the operation of this call within the caller's timeout and the configured maximum, whichever is shorter. One that
   * responds synchronously costs neither a timer nor a signal nor a slot.
   * @param callerTimeoutMs in milliseconds; undefined: none given
   * @throws ServiceError DEADLINE_EXCEEDED; OVERLOADED when the call has to wait and no slot is free
   */
  run<Request, Response>(
    operation: Operation<Request, Response>,
    request: Request,
    callerTimeoutMs: number | undefined,
  ): MaybePromise<Response> {
    const { maxTimeoutMs, pendingCalls } = this.options;
    const timeoutMs = Math.min(callerTimeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    if (timeoutMs <= 0) throw new ServiceError("DEADLINE_EXCEEDED", "the deadline passed before the call arrived");
    this.deadlineAt = readTurnTime() + timeoutMs;
    let isWaiting = false;
    try {
      const response = operation(request, this);
      if (!isPromise(response)) return response;
      const releaseSlot = pendingCalls.tryAcquire(this.caller);
      if (releaseSlot === undefined) {
        response.catch(() => {});
        throw new ServiceError("OVERLOADED", "too many calls are waiting here", { retryAfterSeconds: 1 });
      }
      isWaiting = true;
      return withTimeout(response, timeoutMs, () => {
        throw new ServiceError("DEADLINE_EXCEEDED", `no answer within ${Math.round(timeoutMs)} ms`);
      }).finally(() => {
        releaseSlot();
        this.endWork();
      });
    } finally {
      if (!isWaiting) this.endWork();
    }
  }

  /** Aborts work that the response did not wait for. */
  private endWork(): void {
    this.isWorkOver = true;
    this.workController?.abort(ABANDONED);
  }

  /** Runs the operation of this call and answers it: at once if that is synchronous, or when it is its caller's turn. */
  invoke(
    operation: Operation<Message, Message>,
    request: Message,
    callerTimeoutMs: number | undefined,
    responder: CallResponder,
  ): void {
    let result: MaybePromise<Message>;
    try {
      result = this.run(operation, request, callerTimeoutMs);
    } catch (error) {
      responder.fail(error);
      return;
    }
    if (isPromise(result)) {
      void result.then(
        (message) => this.continueInTurn(() => responder.succeed(message)),
        (error) => this.continueInTurn(() => responder.fail(error)),
      );
    } else responder.succeed(result);
  }

  /** Calls `listener` when the request ends in any way: its response is sent, or its caller is gone. */
  onEnd(listener: () => void): void {
    if (this.hasEnded) {
      listener();
      return;
    }
    const earlier = this.endListener;
    this.endListener = () => {
      earlier?.();
      listener();
    };
  }

  /** Records a failure, reports internal errors, and returns the public error. */
  recordFailure(error: unknown): ServiceError {
    const publicError = this.reportFailure(error);
    this.code = toCodeName(publicError.reason);
    this.reason = publicError.reason;
    this.addLogFields({ reason: publicError.reason });
    return publicError;
  }

  /** Reports internal errors, but for those that an operation throws after its caller has left. */
  private reportFailure(error: unknown): ServiceError {
    const publicError = toServiceError(error);
    if (publicError.reason === "INTERNAL" && !this.isAborted) this.options.onInternalError(error, this.requestId);
    return publicError;
  }

  /** Runs the operation of this call within its trace, if there is a tracer. */
  runTraced<T>(work: () => T): T {
    // Nothing would end a trace that starts after the request ended.
    if (this.isAborted) return work();
    this.trace = this.options.tracer?.startTrace(this);
    return this.trace === undefined ? work() : this.trace.run(work);
  }

  end(isFinished: boolean): void {
    if (!isFinished) {
      this.isAborted = true;
      this.callerController?.abort(ABANDONED);
      this.workController?.abort(ABANDONED);
    }
    this.hasEnded = true;
    this.endListener?.();
    this.durationMs = Math.round((performance.now() - this.startedAt) * 1000) / 1000;
    if (!isFinished && !this.isMalformed) this.code = "canceled";
    const { log, tracer } = this.options;
    log(this, this.reason);
    // A call may be rejected before its operation starts its trace.
    if (tracer !== undefined) (this.trace ?? tracer.startTrace(this))?.end(this, this.reason, this.res);
  }
}

function createController(isAborted: boolean): AbortController {
  const controller = new AbortController();
  // A call has many upstream requests, each with a listener: Node.js would warn of a leak.
  setMaxListeners(0, controller.signal);
  if (isAborted) controller.abort(ABANDONED);
  return controller;
}

/** Returns undefined for the connection of an HTTP/2 session that has ended: Node.js throws. */
function readAddress(socket: { readonly remoteAddress?: string | undefined } | undefined): string | undefined {
  try {
    return socket?.remoteAddress;
  } catch {
    return undefined;
  }
}

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;
const ID_BYTES = 16;
const IDS_PER_BLOCK = 128;

/** Identifiers that are drawn together: a draw of random bytes costs as much as everything else about twenty of them. */
const block = { hex: "", used: IDS_PER_BLOCK };

/** Creates the id of a request that carries none: a UUID of version 4 (RFC 9562 5.4). */
export function createRequestId(): string {
  if (block.used === IDS_PER_BLOCK) drawBlock();
  const at = block.used * 2 * ID_BYTES;
  block.used += 1;
  const take = (from: number, to: number): string => block.hex.slice(at + from, at + to);
  return `${take(0, 8)}-${take(8, 12)}-${take(12, 16)}-${take(16, 20)}-${take(20, 32)}`;
}

function drawBlock(): void {
  const bytes = randomFillSync(Buffer.alloc(ID_BYTES * IDS_PER_BLOCK));
  for (let id = 0; id < bytes.length; id += ID_BYTES) {
    bytes[id + 6] = ((bytes[id + 6] ?? 0) & 0x0f) | 0x40;
    bytes[id + 8] = ((bytes[id + 8] ?? 0) & 0x3f) | 0x80;
  }
  block.hex = bytes.toString("hex");
  block.used = 0;
}
