import { STATUS_BY_REASON } from "../../../src/http/request/error-mapping.js";
import type { HttpResult } from "./http-connections.js";
import { findPlantedKeys } from "./planted-keys.js";

// Invariants of every response and every log line, whatever the request.

/** Codes of server errors, by Connect's name and gRPC's number. */
const SERVER_FAULT_CODES = new Set(["internal", "unknown", "data_loss", "13", "2", "15"]);
/** The only allowed reasons of responses with a status of 500 or more. */
const ALLOWED_5XX_REASONS: ReadonlySet<string> = new Set(
  Object.entries(STATUS_BY_REASON).flatMap(([reason, { status }]) =>
    status >= 500 && reason !== "INTERNAL" ? [reason] : [],
  ),
);
const ALLOWED_5XX_CODES = new Set(["unavailable", "resource_exhausted", "deadline_exceeded"]);
const ALLOWED_5XX_STATUSES = new Set([503, 504]);
/** Part of every value that attempts an injection. */
export const INTRUSION_MARKER = "INTRUSION";

/** Returns what is wrong with a response; undefined: nothing. */
export function findResponseProblem(answer: HttpResult): string | undefined {
  if (answer.kind === "closed") return undefined;
  if (answer.kind === "silent") return "no response on an open connection";
  const { status, headers, trailers, body } = answer;
  const text = body.toString("latin1");
  const keys = findPlantedKeys(`${JSON.stringify(headers)}${JSON.stringify(trailers)}${text}`).filter((key) =>
    /^the operator/.test(key),
  );
  if (keys.length > 0) return `the response contains ${keys.join(", ")}`;
  if (headers["x-intrusion"] !== undefined) return "an injected header in the response";
  const requestId = headers["x-request-id"];
  // What shared caches may keep has none if it was a response to GET.
  const isShared = /^(?:public|no-cache)/.test(headers["cache-control"] ?? "");
  if (!(isShared && requestId === undefined) && !/^[A-Za-z0-9._-]{1,128}$/.test(requestId ?? ""))
    return "no request id";
  if (headers["x-content-type-options"] !== "nosniff") return "no nosniff";
  const type = headers["content-type"] ?? "";
  // Pages and probes are served as text.
  if (type !== "" && !/^(?:application\/(?:json|proto|grpc|connect)|text\/(?:html|plain);)/.test(type)) {
    return `content type ${type}`;
  }
  if (/^application\/grpc/.test(type)) return findGrpcProblem(answer, text);
  if (status >= 500 && !ALLOWED_5XX_STATUSES.has(status)) return `status ${status}`;
  if (status < 400 || answer.isHead) return undefined;
  return findErrorBodyProblem(status, text);
}

function findGrpcProblem({ status, headers, trailers }: Extract<HttpResult, { kind: "answer" }>, text: string) {
  if (status !== 200) return status < 500 ? undefined : `gRPC with HTTP status ${status}`;
  const grpcStatus = trailers["grpc-status"] ?? headers["grpc-status"] ?? /grpc-status:\s*(\d+)/.exec(text)?.[1];
  if (grpcStatus === undefined) return "no gRPC status";
  return SERVER_FAULT_CODES.has(grpcStatus) ? `gRPC status ${grpcStatus}` : undefined;
}

function findErrorBodyProblem(status: number, text: string): string | undefined {
  let error: { code?: unknown; reason?: unknown; message?: unknown };
  try {
    error = JSON.parse(Buffer.from(text, "latin1").toString()) as typeof error;
  } catch {
    return `status ${status} with a body that is not JSON`;
  }
  const { code, reason, message } = error;
  if (typeof code !== "string" || SERVER_FAULT_CODES.has(code)) return `code ${String(code)}`;
  if (typeof message !== "string") return "no message";
  if (status < 500) return undefined;
  const isAllowed = ALLOWED_5XX_CODES.has(code) && (reason === undefined || ALLOWED_5XX_REASONS.has(String(reason)));
  return isAllowed ? undefined : `status ${status} with ${code} and reason ${String(reason)}`;
}

/** Returns problems of the output: each log line must be a JSON object without a server error or an injection. */
export function findOutputProblems({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string[] {
  const problems = stderr === "" ? [] : [`standard error: ${stderr}`];
  const lines = stdout.split("\n");
  if (lines.pop() !== "") problems.push("the last log line is incomplete");
  for (const line of lines) {
    if (/^hop-gateway (listens on|serves metrics at) http:\/\/127\.0\.0\.1:/.test(line)) continue;
    if (/^hop-gateway: \d+ of \d+ chains reachable/.test(line)) continue;
    const problem = findLogLineProblem(line);
    if (problem !== undefined) problems.push(`${problem}: ${line}`);
  }
  const keys = findPlantedKeys(stdout);
  return keys.length === 0 ? problems : [...problems, `the log contains ${keys.join(", ")}`];
}

function findLogLineProblem(line: string): string | undefined {
  if (!/^[\x20-\x7e]*$/.test(line)) return "characters that are not printable";
  if (line.includes(INTRUSION_MARKER)) return "input of a caller";
  let parsed: { level?: unknown; time?: unknown; code?: unknown; requestId?: unknown };
  try {
    parsed = JSON.parse(line) as typeof parsed;
  } catch {
    return "invalid JSON";
  }
  const { level, time, code, requestId } = parsed;
  if (typeof level !== "number" || typeof time !== "string") return "not a log line of the service";
  if (level >= 50) return "a server error";
  if (code !== undefined && SERVER_FAULT_CODES.has(String(code))) return `code ${String(code)}`;
  const isIdValid = requestId === undefined || /^[A-Za-z0-9._-]{1,128}$/.test(String(requestId));
  return isIdValid ? undefined : "an invalid request ID";
}
