// Learns which batch sizes an endpoint accepts. Pure transitions: each returns the next state.

/** What is known of the batch sizes that an endpoint accepts. */
export interface BatchSupport {
  /** Number of calls in the largest batch that was accepted. */
  readonly largestAccepted: number;
  /** The smallest rejected size, and until when batches of this size and above are not tried. */
  readonly rejection: { readonly size: number; readonly expiresAt: number } | undefined;
  /** How long the last rejection counts once it is confirmed, in milliseconds. */
  readonly rejectionTtlMs: number;
  readonly consecutiveServerErrors: number;
}

const REJECTION_TTL_MS = 10 * 60_000;
/** TTL when the rejection may have been an unrelated server error. */
const UNCERTAIN_REJECTION_TTL_MS = 30_000;
/** After so many server errors in a row, a batch size that was accepted before counts as rejected. */
const MAX_CONSECUTIVE_SERVER_ERRORS = 3;
/** Statuses about access and rate, which say nothing about batches. */
const UNRELATED_STATUSES: ReadonlySet<number> = new Set([401, 403, 429]);

export const INITIAL_BATCH_SUPPORT: BatchSupport = {
  largestAccepted: 1,
  rejection: undefined,
  rejectionTtlMs: REJECTION_TTL_MS,
  consecutiveServerErrors: 0,
};

/** Returns whether calls should go out as one batch. */
export function shouldBatch({ rejection }: BatchSupport, size: number, now: number): boolean {
  return rejection === undefined || rejection.size > size || now >= rejection.expiresAt;
}

/**
 * Returns whether the endpoint has never accepted a batch of this size. Only then does an error lead to separate calls
 * at once. For a size that was accepted before, the error counts as a failure of the endpoint.
 */
export function isUntriedSize({ largestAccepted }: BatchSupport, size: number): boolean {
  return size > largestAccepted;
}

/**
 * Returns whether an HTTP status may mean that the endpoint rejects batches.
 * @param isThrifty whether only client errors may, since most others mean that the endpoint is down
 */
export function isPossibleBatchRejection(status: number | undefined, isThrifty = false): status is number {
  if (status === undefined || UNRELATED_STATUSES.has(status)) return false;
  return !isThrifty || (status >= 400 && status < 500);
}

/** The endpoint responded with JSON. */
export function onBatchResponse(state: BatchSupport): BatchSupport {
  return { ...state, consecutiveServerErrors: 0 };
}

export function onBatchAccepted(state: BatchSupport, size: number): BatchSupport {
  const { rejection } = state;
  return {
    ...state,
    largestAccepted: Math.max(state.largestAccepted, size),
    rejection: rejection !== undefined && rejection.size <= size ? undefined : rejection,
  };
}

/** The endpoint rejected the batch as a whole. */
export function onBatchRejected(state: BatchSupport, isUntried: boolean): BatchSupport {
  const next = { ...state, rejectionTtlMs: REJECTION_TTL_MS };
  return isUntried ? next : { ...next, largestAccepted: 1 };
}

/** The endpoint mixed up the ids of the calls in its response. */
export function onBatchMixedUp(state: BatchSupport): BatchSupport {
  return { ...state, rejectionTtlMs: UNCERTAIN_REJECTION_TTL_MS, largestAccepted: 1 };
}

/** The endpoint responded with an HTTP status for which isPossibleBatchRejection is true. */
export function onBatchHttpError(state: BatchSupport, status: number, isUntried: boolean): BatchSupport {
  const isServerError = status >= 500;
  const consecutiveServerErrors = isServerError ? state.consecutiveServerErrors + 1 : 0;
  // Most server errors have nothing to do with the batch.
  const isRejection = !isServerError || consecutiveServerErrors >= MAX_CONSECUTIVE_SERVER_ERRORS;
  return {
    ...state,
    consecutiveServerErrors,
    rejectionTtlMs: isServerError ? UNCERTAIN_REJECTION_TTL_MS : REJECTION_TTL_MS,
    largestAccepted: !isUntried && isRejection ? 1 : state.largestAccepted,
  };
}

/** The calls of a rejected batch succeeded separately, so the rejection was about the batch. */
export function onRejectionConfirmed(state: BatchSupport, size: number, now: number): BatchSupport {
  const smallest = Math.min(size, state.rejection?.size ?? size);
  return { ...state, rejection: { size: smallest, expiresAt: now + state.rejectionTtlMs } };
}
