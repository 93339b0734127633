import { ServiceError } from "../../errors.js";
import { createHeadersTooLargeError, createUrlTooLongError } from "../admission/request-admission.js";
import { SUPPORTED_METHODS } from "../request/response.js";
import type { HeaderList } from "../request/response-headers.js";
import type { HttpLimits } from "./http-limits.js";
import { HTTP_CONNECT_METHOD, type HttpProtocolError } from "./http1-server.js";

/** Errors of HTTP/2 sessions that sent too much. All others are malformed input. */
const FLOOD_ERROR_CODES: ReadonlySet<string> = new Set([
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
  "EXCESS_BYTES",
  "REFUSED_STREAMS",
]);

/** Maps input that Node.js did not accept as a request to a response. */
export function toHttpProtocolErrorResponse(
  { code, rawPacket }: HttpProtocolError,
  limits: HttpLimits,
): { readonly status: number; readonly error: ServiceError; readonly headers?: HeaderList } {
  if (code === HTTP_CONNECT_METHOD) {
    const error = new ServiceError("METHOD_NOT_ALLOWED", "the method CONNECT is not supported");
    return { status: 405, error, headers: ["allow", SUPPORTED_METHODS] };
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const line = rawPacket.subarray(0, limits.urlBytes);
    const isUrl = /^[A-Z]+ /.test(line.toString("latin1", 0, 10)) && !line.includes("\n");
    if (isUrl) return { status: 414, error: createUrlTooLongError(limits) };
    return { status: 431, error: createHeadersTooLargeError(limits) };
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return { status: 408, error: new ServiceError("INVALID_PARAMETER", "the request did not arrive in time") };
  }
  if (FLOOD_ERROR_CODES.has(code)) {
    return { status: 429, error: new ServiceError("RATE_LIMITED", "the connection sent too much data") };
  }
  return { status: 400, error: new ServiceError("INVALID_PARAMETER", "malformed HTTP request") };
}
