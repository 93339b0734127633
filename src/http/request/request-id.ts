import { randomUUID } from "node:crypto";

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the id that the request carries if it is safe to log, or a new one. */
export function resolveRequestId(id: unknown): string {
  return typeof id === "string" && REQUEST_ID_PATTERN.test(id) ? id : createRequestId();
}

/** Creates the id of a request that carries none. */
export function createRequestId(): string {
  return randomUUID();
}
