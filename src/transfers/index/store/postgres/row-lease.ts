import { createAbortScope } from "../../../../resilience/abort-scope.js";
import type { Lease, LeaseHolder, LeaseOptions, Leases } from "../lease.js";
import type { PostgresPool } from "./connection/connection.js";
import { PostgresFailure } from "./connection/failures.js";

// A lease is a row with an expiry time, which its holder moves on. Nothing depends on a session, so that it works behind a
// pooler, and all times are the server's. Each change of the holder increases the fence.

/** A lease that is not renewed ends after this time. A new holder appears within this time and one retry interval. */
export const LEASE_MS = 6_000;
const HEARTBEAT_INTERVAL_MS = 1_500;
const RETRY_INTERVAL_MS = 1_000;

/** The leases of one process. */
export interface RowLeases extends Leases {
  /**
   * Returns the fences of the leases that this process holds, by name: what it writes is valid only while they are the rows'.
   */
  fences(): ReadonlyMap<string, number>;
  /** Ends a wait for a lease that another process has released. */
  wake(): void;
  /** Ends all leases of this process, whose rows have other fences. */
  loseAll(): void;
  close(): void;
}

export interface RowLeaseOptions {
  readonly pool: PostgresPool;
  /** Unique to the process, also after a restart. */
  readonly holder: string;
  readonly host: string;
  readonly pid: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Called after a lease was released or lost. */
  readonly onReleased: () => void;
}

interface HeldLease {
  readonly fence: number;
  readonly lost: AbortController;
  /** When the last successful renewal was sent: the server's expiry time is later. */
  renewedAt: number;
}

interface LeaseRow {
  readonly holder: string;
  readonly host: string;
  readonly pid: number;
  readonly fence: number;
}

const ACQUIRE = `
insert into leases as l (name, holder, host, pid, fence, expires_at)
values ($1, $2, $3, $4, 1, clock_timestamp() + make_interval(secs => $5))
on conflict (name) do update
set holder = excluded.holder, host = excluded.host, pid = excluded.pid, fence = l.fence + 1, expires_at = excluded.expires_at
where l.expires_at <= clock_timestamp() or l.holder = excluded.holder
returning holder, host, pid, fence`;
const RENEW = `
update leases set expires_at = clock_timestamp() + make_interval(secs => $2)
where holder = $1 and expires_at > clock_timestamp() returning name, fence`;
const RELEASE = "update leases set expires_at = '-infinity' where name = $1 and holder = $2 and fence = $3";

export function createRowLeases({ pool, holder, host, pid, now, onReleased }: RowLeaseOptions): RowLeases {
  const held = new Map<string, HeldLease>();
  const waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function lose(name: string): void {
    const lease = held.get(name);
    held.delete(name);
    lease?.lost.abort();
  }

  /** Renews all leases of this process with one statement. */
  async function renew(): Promise<void> {
    const sentAt = now();
    try {
      const rows = await pool.query<{ name: string; fence: number }>(RENEW, [holder, LEASE_MS / 1_000]);
      const fences = new Map(rows.map(({ name, fence }) => [name, fence]));
      for (const [name, lease] of held) {
        if (fences.get(name) === lease.fence) lease.renewedAt = sentAt;
        else if (lease.renewedAt < sentAt) lose(name);
      }
    } catch {
      // Whether the server renewed them is unknown; it did not do so before the last success.
    }
    for (const [name, { renewedAt }] of held) if (now() - renewedAt >= LEASE_MS) lose(name);
    schedule();
  }

  function schedule(): void {
    clearTimeout(timer);
    timer = held.size === 0 ? undefined : setTimeout(() => void renew(), HEARTBEAT_INTERVAL_MS);
    timer?.unref();
  }

  async function release(name: string, lease: HeldLease): Promise<void> {
    if (held.get(name) === lease) held.delete(name);
    // If this fails, the lease expires.
    await pool.query(RELEASE, [name, holder, lease.fence]).catch(() => {});
    onReleased();
  }

  return {
    async acquire(name): Promise<Lease | LeaseHolder> {
      const sentAt = now();
      const [row] = await pool.query<LeaseRow>(ACQUIRE, [name, holder, host, pid, LEASE_MS / 1_000]);
      if (row !== undefined) {
        const lease: HeldLease = { fence: row.fence, lost: new AbortController(), renewedAt: sentAt };
        held.set(name, lease);
        if (timer === undefined) schedule();
        return { lost: lease.lost.signal, release: () => release(name, lease) };
      }
      const [other] = await pool.query<LeaseRow>("select holder, host, pid, fence from leases where name = $1", [name]);
      if (other === undefined) throw new PostgresFailure("", "a lease has disappeared");
      return other.host === host ? { pid: other.pid } : { pid: other.pid, host: other.host };
    },
    waitForRelease: (sleep: LeaseOptions["sleep"], signal) =>
      new Promise((resolve) => {
        // Ends the sleep when the wait is ended by `wake`.
        const scope = createAbortScope(signal);
        const resume = (): void => {
          waiting.delete(resume);
          scope.cancel();
          resolve();
        };
        waiting.add(resume);
        void sleep(RETRY_INTERVAL_MS, scope.signal).then(resume);
      }),
    fences: () => new Map([...held].map(([name, { fence }]) => [name, fence])),
    wake() {
      for (const resume of waiting) resume();
    },
    loseAll() {
      for (const name of [...held.keys()]) lose(name);
    },
    close() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
