import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { ErrorReason, ServiceError } from "../../errors.js";
import type { CachePolicy, CallContext } from "../../operations/operation.js";
import { buildCacheHeaders } from "./cache-headers.js";
import { identifyCaller } from "./caller.js";
import { toCodeName, toServiceError } from "./error-mapping.js";
import { resolveRequestId } from "./request-id.js";
import { assertValidMetadata } from "./response-metadata.js";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

export type Protocol = "grpc" | "grpc-web" | "connect" | "connect-get" | "rest";

type LogFields = Readonly<Record<string, string | number | boolean>>;

/** The one log line of a request. It holds no URL and no query: those can carry keys. */
export interface AccessLogEntry extends LogFields {
  readonly requestId: string;
  readonly protocol: Protocol;
  /** Full name of service and method, as in `hop.bridge.v1.BridgeService/GetQuote`; a document's path; empty where there is neither. */
  readonly operation: string;
  /** `ok`, or the name of a Connect code; `canceled` where the caller left before the answer was out. */
  readonly code: string;
  /** Milliseconds from the request's headers to the end of the answer. */
  readonly durationMs: number;
}

/** @param reason for which the request was refused or failed, as its caller is told; empty: for none */
export type AccessLog = (line: AccessLogEntry, reason: ErrorReason | "") => void;

/** Follows calls of operations, such as by spans. */
export interface CallTracer {
  /** Follows a call; undefined: not this one. */
  startTrace(call: TracedCall): CallTrace | undefined;
}

export interface TracedCall {
  readonly protocol: Protocol;
  /** Full name of service and method. */
  readonly operation: string;
  /** Where the caller may say what the call is a part of. */
  readonly headers: IncomingHttpHeaders;
  /** On the clock of `performance.now()`. */
  readonly startedAt: number;
}

export interface CallTrace {
  /** Runs work so that everything it begins is known to be a part of the call. */
  run<T>(work: () => T): T;
  /** @param res undefined where the call had none of its own */
  end(line: AccessLogEntry, reason: ErrorReason | "", res: HttpResponse | undefined): void;
}

/** Gets what lies behind an answer INTERNAL. */
export type InternalErrorReporter = (error: unknown, requestId: string) => void;

/** One request in progress; whoever handles it writes down what the log is to say. */
export interface RequestContext {
  readonly requestId: string;
  protocol: Protocol;
  operation: string;
  code: string;
  /** Why it failed; empty where it did not, or its protocol's own words say why. */
  reason: ErrorReason | "";
  /** The request broke off because it is malformed: that is the code to log, not `canceled`. */
  isMalformed: boolean;
  /** What every answer to it says of the caller's rate limit, names and values in turn: nothing where there is none. */
  rateLimitHeaders: readonly string[];
  /** By what callers are told apart. */
  readonly caller: string;
  /** Whether the call ended before its answer did. */
  readonly isAborted: boolean;
  /** Fires when the caller is gone. Made when it is first read. */
  readonly signal: AbortSignal;
  /** Whether the operation said that its answer may be kept for some time. */
  readonly isCacheable: boolean;
  /** What the operation said of its answer, as headers: names and values in turn. For an answer that succeeded. */
  buildResponseHeaders(): readonly string[];
  /** What an operation may know of this call; `timeoutMs` as in CallContext. */
  toCallContext(timeoutMs: number | undefined): CallContext;
  /** Notes that the call failed, reports a fault of ours, and gives what the caller is told. */
  recordFailure(error: unknown): ServiceError;
}

/** A call on a stream of HTTP/2 below Node's requests and responses. */
export type StreamRequestContext = HttpRequestContext;

const NO_HEADERS: readonly string[] = [];

/** What all calls share. */
export interface RequestContextOptions {
  readonly log: AccessLog;
  readonly onInternalError: InternalErrorReporter;
  /** Take the caller's address from X-Forwarded-For: true behind a proxy that sets it. */
  readonly trustProxy: boolean;
  readonly tracer?: CallTracer | undefined;
}

/**
 * The record of a call, which is also what its operation sees of it. A class, since there is one for each request: its
 * getters make what few requests need only when it is asked for, and cost the others nothing.
 */
export class HttpRequestContext implements RequestContext, CallContext, TracedCall {
  readonly requestId: string;
  protocol: Protocol = "rest";
  operation = "";
  code = "unknown";
  reason: ErrorReason | "" = "";
  isMalformed = false;
  rateLimitHeaders: readonly string[] = NO_HEADERS;
  isAborted = false;
  /** Where its answer goes; undefined on a stream. */
  res: HttpResponse | undefined = undefined;
  /** On a stream: whether the whole answer has been given to it. */
  hasResponded = false;
  timeoutMs: number | undefined = undefined;
  private cachePolicy: CachePolicy | undefined = undefined;
  private responseMetadata: Readonly<Record<string, string>> | undefined = undefined;
  private logFields: LogFields | undefined = undefined;
  private abortController: AbortController | undefined = undefined;
  private trace: CallTrace | undefined = undefined;
  readonly startedAt = performance.now();

  constructor(
    readonly headers: IncomingHttpHeaders,
    private readonly socket: { readonly remoteAddress?: string | undefined } | undefined,
    private readonly options: RequestContextOptions,
  ) {
    this.requestId = resolveRequestId(headers["x-request-id"]);
  }

  get caller(): string {
    const given = this.options.trustProxy ? this.headers["x-forwarded-for"] : undefined;
    return identifyCaller(this.socket?.remoteAddress, given?.toString());
  }

  get signal(): AbortSignal {
    if (this.abortController === undefined) {
      this.abortController = new AbortController();
      // One call asks many others, each of which listens: no leak, though Node.js warns of one.
      setMaxListeners(0, this.abortController.signal);
      if (this.isAborted) this.abortController.abort();
    }
    return this.abortController.signal;
  }

  // Functions of their own, since an operation may take them out of the context.

  get addLogFields(): CallContext["addLogFields"] {
    return (more) => {
      this.logFields = this.logFields === undefined ? more : { ...this.logFields, ...more };
    };
  }

  get setCachePolicy(): CallContext["setCachePolicy"] {
    return (policy) => {
      this.cachePolicy = policy;
    };
  }

  get setResponseMetadata(): CallContext["setResponseMetadata"] {
    return (entries) => {
      assertValidMetadata(entries);
      this.responseMetadata = this.responseMetadata === undefined ? entries : { ...this.responseMetadata, ...entries };
    };
  }

  get isCacheable(): boolean {
    return this.cachePolicy !== undefined && this.cachePolicy !== "private";
  }

  buildResponseHeaders(): readonly string[] {
    const caching = buildCacheHeaders(this.cachePolicy);
    if (this.responseMetadata === undefined) return caching;
    const headers = [...caching];
    for (const name in this.responseMetadata) headers.push(name, this.responseMetadata[name] ?? "");
    return headers;
  }

  toCallContext(timeoutMs: number | undefined): CallContext {
    this.timeoutMs = timeoutMs;
    return this;
  }

  recordFailure(error: unknown): ServiceError {
    const told = toServiceError(error);
    this.code = toCodeName(told.reason);
    this.reason = told.reason;
    this.addLogFields({ reason: told.reason });
    // What an operation throws when its caller leaves is no fault of ours.
    if (told.reason === "INTERNAL" && !this.isAborted) this.options.onInternalError(error, this.requestId);
    return told;
  }

  /** Runs this call's operation as a part of it, where calls are followed. */
  runTraced<T>(work: () => T): T {
    // What begins once the call has ended would have nobody to end it.
    if (this.isAborted) return work();
    this.trace = this.options.tracer?.startTrace(this);
    return this.trace === undefined ? work() : this.trace.run(work);
  }

  end(finished: boolean): void {
    if (!finished) {
      this.isAborted = true;
      this.abortController?.abort();
    }
    const { requestId, protocol, operation, logFields } = this;
    const durationMs = Math.round((performance.now() - this.startedAt) * 1000) / 1000;
    const code = finished || this.isMalformed ? this.code : "canceled";
    const line: AccessLogEntry & Record<string, string | number | boolean> = {
      requestId,
      protocol,
      operation,
      code,
      durationMs,
    };
    // Not by spreading, which here costs more than all else in this function.
    for (const name in logFields) if (!(name in line)) line[name] = logFields[name] ?? "";
    this.options.log(line, this.reason);
    const { tracer } = this.options;
    // A call may be refused before its operation.
    if (tracer !== undefined) (this.trace ?? tracer.startTrace(this))?.end(line, this.reason, this.res);
  }
}
