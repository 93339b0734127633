import type { CachePolicy, CallContext } from "../../../src/operations/operation.js";

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
