import { randomUUID } from "node:crypto";
import { type EventEmitter, setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { ServiceError } from "../errors.js";
import type { CallContext } from "../operations/operation.js";
import { codeNameOf, toServiceError } from "./errors.js";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

export type Protocol = "grpc" | "grpc-web" | "connect" | "connect-get" | "rest";

type Facts = Readonly<Record<string, string | number | boolean>>;

/** The one log line of a request. It holds no URL and no query: those can carry keys. */
export interface AccessLine extends Facts {
  readonly requestId: string;
  readonly protocol: Protocol;
  /** Full name of service and method, as in `hop.bridge.v1.BridgeService/GetQuote`; empty where there is none. */
  readonly operation: string;
  /** `ok`, or the name of a Connect code; `canceled` where the caller left before the answer was out. */
  readonly code: string;
  /** Milliseconds from the request's headers to the end of the answer. */
  readonly ms: number;
}

export type AccessLog = (line: AccessLine) => void;

/** Gets what lies behind an answer INTERNAL. */
export type InternalErrorReport = (error: unknown, requestId: string) => void;

/** One request in progress; whoever handles it writes down what the log is to say. */
export interface Call {
  readonly requestId: string;
  protocol: Protocol;
  operation: string;
  code: string;
  /** The request broke off because it is malformed: that is the code to log, not `canceled`. */
  malformed: boolean;
  /** Fires when the caller is gone. */
  readonly signal: AbortSignal;
  /** What an operation may know of this call; `timeoutMs` as in CallContext. */
  context(timeoutMs: number | undefined): CallContext;
  /** Notes that the call failed, reports a fault of ours, and gives what the caller is told. */
  fail(error: unknown): ServiceError;
}

export interface Calls {
  /** Starts the record of a request. It ends, with its log line, when the answer is out or the caller gone. */
  open(req: HttpRequest, res: HttpResponse): Call;
  /** The last request opened on an HTTP/1.1 connection whose answer is not out yet. */
  inProgress(socket: Socket): Call | undefined;
  /** Logs a request that never became one, because its bytes are no HTTP. */
  refused(requestId: string, code: string): void;
}

interface OpenCall extends Call {
  end(finished: boolean): void;
}

/** How long a caller who has the answer may go on with the request. */
const LINGER_MS = 1000;

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** An id for a request that brought none. */
export function newRequestId(): string {
  return randomUUID();
}

export interface CallsOptions {
  readonly log: AccessLog;
  readonly onInternalError: InternalErrorReport;
  /** Take the caller's address from X-Forwarded-For: true behind a proxy that sets it. */
  readonly trustProxy: boolean;
}

export function createCalls({ log, onInternalError, trustProxy }: CallsOptions): Calls {
  const openByConnection = new WeakMap<EventEmitter, Set<OpenCall>>();

  // The end of a connection must end its calls whatever their own events say: HTTP/1.1 answers that wait in line are
  // told nothing then, nor are HTTP/2 streams with unread data.
  function openOn(connection: EventEmitter): Set<OpenCall> {
    const known = openByConnection.get(connection);
    if (known !== undefined) return known;
    const open = new Set<OpenCall>();
    openByConnection.set(connection, open);
    connection.once("close", () => {
      for (const call of open) call.end(false);
      open.clear();
    });
    return open;
  }

  return {
    open(req, res) {
      const call = createCall(req, callerOf(req, trustProxy), log, onInternalError);
      const open = openOn("stream" in req ? (req.stream.session ?? req.stream) : req.socket);
      open.add(call);
      function end(finished: boolean): void {
        if (open.delete(call)) call.end(finished);
      }
      req.on("error", ignore);
      res.on("error", ignore);
      if (!("stream" in req)) {
        // What a connection that is cut leaves unsent finishes too.
        res.once("finish", () => end(!req.socket.destroyed));
        return call;
      }
      const { stream } = req;
      // The answer to HEAD ends without a "finish".
      const isHead = req.method === "HEAD";
      stream.once("close", () => end(isHead && res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR));
      stream.once("finish", () => {
        // A stream that its caller resets is finished too.
        if (res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR) end(true);
        if (stream.endAfterHeaders || stream.readableEnded) return;
        // What the caller still sends is of no use to anyone, but to stop it at once would stop our trailers too.
        stream.resume();
        const linger = setTimeout(() => stream.close(), LINGER_MS).unref();
        stream.once("close", () => clearTimeout(linger));
      });
      return call;
    },
    inProgress(socket) {
      return [...(openByConnection.get(socket) ?? [])].at(-1);
    },
    refused(requestId, code) {
      log({ requestId, protocol: "rest", operation: "", code, ms: 0 });
    },
  };
}

/** The last address of X-Forwarded-For is the one that the trusted proxy itself saw; those before it are hearsay. */
function callerOf({ headers, socket }: HttpRequest, trustProxy: boolean): string {
  const forwarded = trustProxy ? [headers["x-forwarded-for"]].flat().join(",").split(",").at(-1)?.trim() : undefined;
  return forwarded || (socket.remoteAddress ?? "");
}

function createCall(
  { headers }: HttpRequest,
  caller: string,
  log: AccessLog,
  onInternalError: InternalErrorReport,
): OpenCall {
  const start = performance.now();
  const gone = new AbortController();
  // One call asks many others, each of which listens: no leak, though Node.js warns of one.
  setMaxListeners(0, gone.signal);
  const givenId = headers["x-request-id"];
  const requestId = typeof givenId === "string" && REQUEST_ID.test(givenId) ? givenId : newRequestId();
  const facts: Record<string, string | number | boolean> = {};
  const call: OpenCall = {
    requestId,
    protocol: "rest",
    operation: "",
    code: "unknown",
    malformed: false,
    signal: gone.signal,
    context: (timeoutMs) => ({
      requestId,
      caller,
      signal: gone.signal,
      timeoutMs,
      note: (more) => {
        Object.assign(facts, more);
      },
    }),
    fail(error) {
      const told = toServiceError(error);
      call.code = codeNameOf(told.reason);
      // What an operation throws when its caller leaves is no fault of ours.
      if (told.reason === "INTERNAL" && !gone.signal.aborted) onInternalError(error, requestId);
      return told;
    },
    end(finished) {
      if (!finished) gone.abort();
      const ms = Math.round((performance.now() - start) * 1000) / 1000;
      const code = finished || call.malformed ? call.code : "canceled";
      log({ ...facts, requestId, protocol: call.protocol, operation: call.operation, code, ms });
    },
  };
  return call;
}

// A connection that breaks shows in the answer's own end; without a listener it would end the process.
function ignore(): void {}
