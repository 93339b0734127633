import { Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { type ErrorReason, ServiceError } from "../../errors.js";

const STATUS_BY_REASON: Readonly<Record<ErrorReason, { readonly code: Code; readonly status: number }>> = {
  MISSING_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  INVALID_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  UNKNOWN_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_NETWORK: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_TOKEN: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_CHAIN: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_ROUTE: { code: Code.InvalidArgument, status: 400 },
  RPC_URL_FORBIDDEN: { code: Code.InvalidArgument, status: 400 },
  TRANSFER_NOT_FOUND: { code: Code.NotFound, status: 404 },
  PATH_NOT_FOUND: { code: Code.NotFound, status: 404 },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, status: 405 },
  RATE_LIMITED: { code: Code.ResourceExhausted, status: 429 },
  // Ours to bear and not the caller's fault: over HTTP no 4xx.
  OVERLOADED: { code: Code.ResourceExhausted, status: 503 },
  UPSTREAM_UNAVAILABLE: { code: Code.Unavailable, status: 503 },
  DEADLINE_EXCEEDED: { code: Code.DeadlineExceeded, status: 504 },
  INTERNAL: { code: Code.Internal, status: 500 },
};

/** Longest text about a request that does not parse: it can hold what the caller sent, at any length. */
const MAX_ERROR_TEXT_LENGTH = 200;

/** HTTP status of a reason. */
export function toHttpStatus(reason: ErrorReason): number {
  return STATUS_BY_REASON[reason].status;
}

/** Name of a reason's code, such as `invalid_argument`. */
export function toCodeName(reason: ErrorReason): string {
  return codeToString(STATUS_BY_REASON[reason].code);
}

/** Headers that come with an error, on every protocol. */
export function toErrorHeaders({ retryAfterSeconds }: ServiceError): Readonly<Record<string, string>> {
  return retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
}

/** What the caller is told: a ServiceError as it is, anything else INTERNAL without detail and with its cause kept. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.reason !== "INTERNAL") return error;
  return new ServiceError("INTERNAL", "internal error", { cause: error });
}

/** Body of an error over plain HTTP. */
export function toErrorBody(error: ServiceError): string {
  const { reason, message, field } = error;
  return JSON.stringify({ code: toCodeName(reason), message, error: message, reason, field });
}

/** The error over gRPC, gRPC-Web and Connect; `domain` says who defines its reason. */
export function toConnectError(error: ServiceError, domain: string): ConnectError {
  const { reason, field } = error;
  // Half a surrogate pair cannot be percent-encoded, which gRPC does with every message.
  const message = error.message.replace(/\p{Surrogate}/gu, "\ufffd");
  const metadata: Record<string, string> = field === undefined ? {} : { field };
  const detail = { desc: ErrorInfoSchema, value: { reason, domain, metadata } };
  return new ConnectError(message, STATUS_BY_REASON[reason].code, toErrorHeaders(error), [detail], error);
}

/**
 * The error for a request that could not be read. Connect calls some of these internal or unknown, yet nobody but the
 * caller is at fault. Too large and not supported keep their codes.
 */
export function toMalformedRequestError(error: unknown, domain: string): ConnectError {
  const known = error instanceof ConnectError ? error : undefined;
  // Connect's word for what it cannot explain; it speaks of a fault of ours.
  const said = known === undefined || known.rawMessage === "internal error" ? undefined : known.rawMessage;
  const message = (said ?? "the request does not parse").replace(/[^\x20-\x7e]/g, "?");
  const short = message.slice(0, MAX_ERROR_TEXT_LENGTH);
  if (known?.code === Code.ResourceExhausted || known?.code === Code.Unimplemented) {
    return new ConnectError(short, known.code, known.metadata);
  }
  return toConnectError(new ServiceError("INVALID_PARAMETER", short), domain);
}
