import { createAbortScope } from "../../../resilience/abort-scope.js";

/** The exclusive right of one process to a piece of work. */
export interface Lease {
  /** Aborts when another process may have acquired the lease although this one has not released it. */
  readonly lost: AbortSignal;
  release(): void | Promise<void>;
}

/** The process that holds a lease. */
export interface LeaseHolder {
  /** 0 while the holder is still writing its process ID. */
  readonly pid: number;
  /** Name of its machine; absent: this one. */
  readonly host?: string;
}

/** Grants leases to the processes that share an index. */
export interface Leases {
  /** Acquires a lease, or returns its holder. */
  acquire(name: string): Promise<Lease | LeaseHolder>;
  /** Resolves when it is time for the next attempt, or when the signal fires; never rejects. */
  waitForRelease(sleep: LeaseOptions["sleep"], signal: AbortSignal): Promise<void>;
}

export interface LeaseOptions {
  /** Resolves when the time has passed or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called once when another process holds the lease. */
  readonly onLeaseHeld: (holder: LeaseHolder) => void;
  /** Called when the state of the lease cannot be read, once until it can be read again; the attempt is repeated. */
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/**
 * Runs work under a lease: waits while another process holds it, begins again if it is lost, and releases it at the end.
 * @param work ends soon after its signal fires
 * @returns once the work is done or the signal fires
 */
export async function runWithLease(
  leases: Leases,
  name: string,
  options: LeaseOptions,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { sleep, onLeaseHeld, onError, signal } = options;
  let isHolderReported = false;
  let isErrorReported = false;
  while (!signal.aborted) {
    const lease = await leases.acquire(name).catch((error: unknown) => {
      if (!isErrorReported) onError(error);
      isErrorReported = true;
    });
    if (lease !== undefined) isErrorReported = false;
    if (lease !== undefined && "release" in lease) {
      isHolderReported = false;
      if (await runUnderLease(lease, signal, work)) return;
    } else if (lease !== undefined) {
      if (!isHolderReported) onLeaseHeld(lease);
      isHolderReported = true;
    }
    if (!signal.aborted) await leases.waitForRelease(sleep, signal);
  }
}

/** @returns whether the work has ended by itself */
async function runUnderLease(
  lease: Lease,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const scope = createAbortScope(signal);
  const abort = (): void => scope.cancel();
  lease.lost.addEventListener("abort", abort, { once: true });
  if (lease.lost.aborted) abort();
  try {
    await work(scope.signal);
    return !lease.lost.aborted;
  } finally {
    lease.lost.removeEventListener("abort", abort);
    scope.cancel();
    await lease.release();
  }
}
