import type { IncomingMessage } from "node:http";
import { ServiceError } from "../../errors.js";
import type { HttpLimits } from "../connection/http-limits.js";
import type { HttpRequest, Protocol, RequestContext } from "../request/request-context.js";
import type { RateLimiter } from "./rate-limiter.js";

const HOST_HEADER = "host";

/**
 * What each request has to pass before its body is read: checks of its URL and headers, then the rate limit of its
 * caller. The body is counted while it arrives, by `OverloadManager.receiveBody`.
 */
export class RequestAdmission {
  readonly #limits: HttpLimits;
  readonly #rateLimiter: RateLimiter | undefined;

  /** @param rateLimiter undefined: there is no limit per caller */
  constructor(limits: HttpLimits, rateLimiter: RateLimiter | undefined) {
    this.#limits = limits;
    this.#rateLimiter = rateLimiter;
  }

  /**
   * Returns why a request is refused from its URL and headers alone; undefined: it is not. It is ambiguous where bytes that
   * follow on an HTTP/1.1 connection may belong to this request, not to a next one.
   */
  findRefusal(req: HttpRequest) {
    if ((req.url ?? "").length > this.#limits.urlBytes) {
      return { status: 414, error: createUrlTooLongError(this.#limits), isAmbiguous: false };
    }
    if (this.exceedsHeaderLimits(req.rawHeaders)) {
      return { status: 431, error: createHeadersTooLargeError(this.#limits), isAmbiguous: true };
    }
    const violation = "stream" in req ? undefined : findHttp1Violation(req);
    if (violation === undefined) return undefined;
    return { status: 400, error: new ServiceError("INVALID_PARAMETER", violation), isAmbiguous: true };
  }

  /**
   * Returns whether raw headers, in Node's flat form, exceed the limit for their size or for their number. Over HTTP/2
   * Node.js accepts up to 64 KiB, whatever the SETTINGS frame announces.
   */
  exceedsHeaderLimits(rawHeaders: readonly string[]): boolean {
    let size = 0;
    for (const text of rawHeaders) size += text.length;
    return size > this.#limits.headerBytes || rawHeaders.length > 2 * this.#limits.headers;
  }

  /**
   * Begins a request on every serving path: names its protocol and operation for the log and counts it against the rate
   * limit of its caller.
   *
   * Returns undefined if the request may proceed at once, which costs no promise. Otherwise the promise resolves once
   * the request is counted: to RATE_LIMITED if it has to be rejected. The caller may be gone by then.
   * @param operation full name of service and method, or the path of a document
   */
  begin(
    context: RequestContext,
    protocol: Protocol,
    operation: string,
    isRateLimited: boolean,
  ): Promise<ServiceError | undefined> | undefined {
    context.protocol = protocol;
    context.operation = operation;
    return isRateLimited ? this.#rateLimiter?.count(context) : undefined;
  }
}

export function createUrlTooLongError({ urlBytes }: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the URL is longer than ${urlBytes} bytes`);
}

export function createHeadersTooLargeError({ headerBytes, headers }: HttpLimits): ServiceError {
  return new ServiceError(
    "INVALID_PARAMETER",
    `the headers are longer than ${headerBytes} bytes, or more than ${headers}`,
  );
}

/**
 * Returns what makes an HTTP/1 request ambiguous. A proxy in front may have read such a request differently, which
 * enables request smuggling (RFC 9112 3.2, 6.3 and 11.2).
 */
function findHttp1Violation({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "this HTTP version is not supported";
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return "this Transfer-Encoding is not supported";
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length === HOST_HEADER.length && name.toLowerCase() === HOST_HEADER) hosts += 1;
  }
  if (hosts > 1) return "there is more than one Host header";
  return hosts === 0 && httpVersion === "1.1" ? "the Host header is missing" : undefined;
}
