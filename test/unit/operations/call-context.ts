import type { CallContext } from "../../../src/operations/operation.js";

/** Creates the context of a call from 127.0.0.1 without a deadline, which records nothing. */
export const createCallContext = (overrides: Partial<CallContext> = {}): CallContext => ({
  requestId: "r",
  caller: "127.0.0.1",
  signal: new AbortController().signal,
  timeoutMs: undefined,
  takenMs: 0,
  addLogFields: () => {},
  setCachePolicy: () => {},
  setResponseMetadata: () => {},
  addWarning: () => {},
  countAsRequests: () => undefined,
  describeFailure: () => ({ code: "internal", message: "", reason: "INTERNAL", field: "" }),
  ...overrides,
});
