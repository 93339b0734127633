import type { LeaseHolder, Leases } from "../../../src/transfers/index/leases.js";

/** A lease that this process holds until its release. */
export interface HeldLease {
  /** Aborts when another process may have acquired it. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

/** Works under a lease until its release. Rejects with the holder if another process has it. */
export function holdLease(leases: Leases, name = "follow"): Promise<HeldLease> {
  return new Promise((resolve, reject) => {
    const stopping = new AbortController();
    const stop = (reason: unknown): void => {
      stopping.abort();
      reject(reason);
    };
    const listener = { onLeaseHeld: (holder: LeaseHolder) => stop(holder), onError: stop };
    const running = leases.run(name, listener, stopping.signal, (lost) => {
      const work = new Promise<void>((end) => {
        resolve({
          lost,
          release() {
            stopping.abort();
            end();
            return running;
          },
        });
      });
      return work;
    });
  });
}
