import type { CallContext } from "../../../src/operations/operation.js";

/** Creates the context of a call from 127.0.0.1 without a deadline, which records nothing. */
export function createCallContext(overrides: Partial<CallContext> = {}): CallContext {
  const work = new AbortController();
  return {
    requestId: "r",
    caller: "127.0.0.1",
    signal: work.signal,
    endWork: () => work.abort(),
    timeoutMs: undefined,
    takenMs: 0,
    addLogFields: () => {},
    setCachePolicy: () => {},
    setResponseMetadata: () => {},
    addWarning: () => {},
    countAsRequests: () => undefined,
    describeFailure: () => ({ code: "internal", message: "", reason: "INTERNAL", field: "" }),
    ...overrides,
  };
}
