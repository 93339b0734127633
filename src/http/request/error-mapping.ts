import { Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorInfoSchema, HelpSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { type ErrorReason, ServiceError } from "../../errors.js";

/** The code and the HTTP status of every reason. */
export const STATUS_BY_REASON: Readonly<Record<ErrorReason, { readonly code: Code; readonly status: number }>> = {
  MISSING_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  INVALID_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  UNKNOWN_PARAMETER: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_NETWORK: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_TOKEN: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_CHAIN: { code: Code.InvalidArgument, status: 400 },
  UNSUPPORTED_ROUTE: { code: Code.InvalidArgument, status: 400 },
  RPC_URL_FORBIDDEN: { code: Code.InvalidArgument, status: 400 },
  INDEX_REQUIRED: { code: Code.FailedPrecondition, status: 400 },
  TRANSFER_NOT_FOUND: { code: Code.NotFound, status: 404 },
  PATH_NOT_FOUND: { code: Code.NotFound, status: 404 },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, status: 405 },
  RATE_LIMITED: { code: Code.ResourceExhausted, status: 429 },
  // The server is at fault, not the caller: no 4xx over HTTP.
  OVERLOADED: { code: Code.ResourceExhausted, status: 503 },
  UPSTREAM_UNAVAILABLE: { code: Code.Unavailable, status: 503 },
  CHAIN_STALLED: { code: Code.Unavailable, status: 503 },
  DEADLINE_EXCEEDED: { code: Code.DeadlineExceeded, status: 504 },
  INTERNAL: { code: Code.Internal, status: 500 },
};

/** Longest message about a malformed request. It may repeat input of any length. */
const MAX_ERROR_TEXT_LENGTH = 200;

/** Where the documentation is: the base of the links in errors. Undefined: errors have no link. */
export interface DocsLocation {
  readonly docsUrl?: string | undefined;
}

/** Returns the URL of what the documentation says about a reason. */
export function toHelpUrl(reason: ErrorReason, docsUrl: string): string {
  return `${docsUrl}/errors.md#${reason.toLowerCase()}`;
}

/** Returns the HTTP status of a reason. */
export function toHttpStatus(reason: ErrorReason): number {
  return STATUS_BY_REASON[reason].status;
}

/** Returns the name of the Connect code of a reason, such as `invalid_argument`. */
export function toCodeName(reason: ErrorReason): string {
  return codeToString(STATUS_BY_REASON[reason].code);
}

/** Returns the headers of an error response on every protocol. */
export function toErrorHeaders({ retryAfterSeconds }: ServiceError): Readonly<Record<string, string>> {
  return retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
}

/**
 * Returns the public error: a ServiceError as it is; for anything else INTERNAL, without details but with its cause.
 */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.reason !== "INTERNAL") return error;
  return new ServiceError("INTERNAL", "internal error", { cause: error });
}

/** Returns the body of an error response over plain HTTP. */
export function toErrorBody(error: ServiceError): string {
  const { reason, message, field } = error;
  return JSON.stringify({ code: toCodeName(reason), message, error: message, reason, field });
}

/** Converts an error for gRPC, gRPC-Web and Connect. `domain` is the package that defines its reason. */
export function toConnectError(error: ServiceError, domain: string, { docsUrl }: DocsLocation): ConnectError {
  const { reason, field } = error;
  // gRPC percent-encodes messages, which throws for a lone surrogate.
  const message = error.message.replace(/\p{Surrogate}/gu, "\ufffd");
  const metadata: Record<string, string> = field === undefined ? {} : { field };
  const info = { desc: ErrorInfoSchema, value: { reason, domain, metadata } };
  const links = docsUrl === undefined ? [] : [{ description: reason, url: toHelpUrl(reason, docsUrl) }];
  const details = links.length === 0 ? [info] : [info, { desc: HelpSchema, value: { links } }];
  return new ConnectError(message, STATUS_BY_REASON[reason].code, toErrorHeaders(error), details, error);
}

/**
 * Returns the error for a malformed request. Connect reports some of these as internal or unknown although the caller
 * is at fault. The codes for requests that are too large or unsupported stay.
 */
export function toMalformedRequestError(error: unknown, domain: string, location: DocsLocation): ConnectError {
  const connectError = error instanceof ConnectError ? error : undefined;
  // The request is not at fault.
  if (connectError?.cause instanceof ServiceError) return connectError;
  // Connect uses this message for errors that it cannot explain. It would blame the server.
  const description =
    connectError === undefined || connectError.rawMessage === "internal error" ? undefined : connectError.rawMessage;
  const message = (description ?? "malformed request").replace(/[^\x20-\x7e]/g, "?");
  const shortened = message.slice(0, MAX_ERROR_TEXT_LENGTH);
  if (connectError?.code === Code.DeadlineExceeded) {
    return toConnectError(new ServiceError("DEADLINE_EXCEEDED", shortened), domain, location);
  }
  if (connectError?.code === Code.ResourceExhausted || connectError?.code === Code.Unimplemented) {
    return new ConnectError(shortened, connectError.code, connectError.metadata);
  }
  return toConnectError(new ServiceError("INVALID_PARAMETER", shortened), domain, location);
}
