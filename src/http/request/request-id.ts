import { randomUUID } from "node:crypto";

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

/** The id that a request brought, where it is fit for the log, or a new one. */
export function resolveRequestId(given: unknown): string {
  return typeof given === "string" && REQUEST_ID_PATTERN.test(given) ? given : createRequestId();
}

/** An id for a request that brought none. */
export function createRequestId(): string {
  return randomUUID();
}
