import type { CachePolicy, CallContext } from "../../../src/operations/operation.js";

/** Creates the context of a call from 127.0.0.1 with ten seconds left, which records nothing. */
export function createCallContext(overrides: Partial<CallContext> = {}): CallContext {
  return {
    requestId: "r",
    caller: "127.0.0.1",
    signal: new AbortController().signal,
    remainingMs: () => 10_000,
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

/** Creates a context that records what an operation says about its response. */
export function createRecordingContext(overrides: Partial<CallContext> = {}) {
  const recorded = {
    cache: [] as CachePolicy[],
    metadata: [] as object[],
    warnings: [] as string[],
    logFields: {} as Record<string, unknown>,
  };
  const context = createCallContext({
    addLogFields: (fields) => Object.assign(recorded.logFields, fields),
    setCachePolicy: (policy) => recorded.cache.push(policy),
    setResponseMetadata: (entries) => recorded.metadata.push(entries),
    addWarning: (text) => recorded.warnings.push(text),
    ...overrides,
  });
  return { context, recorded };
}
