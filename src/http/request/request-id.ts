import { randomUUID } from "node:crypto";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The id that a request brought, where it is fit for the log, or a new one. */
export function requestIdOf(given: unknown): string {
  return typeof given === "string" && REQUEST_ID.test(given) ? given : newRequestId();
}

/** An id for a request that brought none. */
export function newRequestId(): string {
  return randomUUID();
}
