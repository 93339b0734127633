import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Kysely } from "kysely";
import { type AbortScope, createAbortScope } from "../../resilience/abort-scope.js";
import type { IndexDatabase } from "./database/index-database.js";
import type { IndexTables } from "./database/schema.js";

// A lease is a row with an expiry time, which its holder moves on. Nothing depends on a session, so that it works behind a
// pooler, and all times are those of the database's clock. Each change of the holder increases the fence.

/** A lease that is not renewed ends after this time. A new holder appears within this time and one retry interval. */
const LEASE_MS = 6_000;
/** Interval of `renew`. */
export const HEARTBEAT_INTERVAL_MS = 1_500;
const RETRY_INTERVAL_MS = 1_000;

/** The process that holds a lease. */
export interface LeaseHolder {
  readonly pid: number;
  /** Name of its machine; absent: this one. */
  readonly host?: string;
}

/** The exclusive right of this process to a piece of work. */
interface HeldLease {
  readonly fence: number;
  /** Ends the work when another process may have acquired the lease although this one has not released it. */
  readonly scope: AbortScope;
  /** When the last successful renewal was sent: the database's expiry time is later. */
  renewedAt: number;
}

/** Grants leases to the processes that share an index: each for a piece of work that one process does for all. */
export class Leases {
  readonly #database: Pick<IndexDatabase, "transact" | "dialect">;
  readonly #now: () => number;
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Unique to this process, also after a restart. */
  readonly #holder = randomUUID();
  readonly #held = new Map<string, HeldLease>();

  /**
   * @param clock `now` is monotonic, in milliseconds; `sleep` resolves when the time has passed or the signal fires
   */
  constructor(
    database: Pick<IndexDatabase, "transact" | "dialect">,
    clock: {
      readonly now: () => number;
      readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
    },
  ) {
    this.#database = database;
    this.#now = clock.now;
    this.#sleep = clock.sleep;
  }

  /**
   * Runs work under a lease: waits while another process holds it, begins again if it is lost, and releases it at the end.
   * @param work ends soon after its signal fires
   * @returns once the work is done or the signal fires
   */
  async run(
    name: string,
    listener: {
      /** Called when another process holds the lease, once until that changes. */
      onLeaseHeld(holder: LeaseHolder): void;
      /** Called when the state of the lease cannot be read, once until it can be read again; the attempt is repeated. */
      onError(error: unknown): void;
    },
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    let reported: "failure" | "holder" | undefined;
    while (!signal.aborted) {
      const renewedAt = this.#now();
      const row = await this.#tryAcquire(name).catch((error: unknown) => {
        if (reported !== "failure") listener.onError(error);
        reported = "failure";
      });
      if (row?.holder === this.#holder) {
        reported = undefined;
        const lease = { fence: row.fence, scope: createAbortScope(signal), renewedAt };
        if (await this.#runUnder(name, lease, work)) return;
      } else if (row !== undefined) {
        if (reported !== "holder") listener.onLeaseHeld(toHolder(row));
        reported = "holder";
      }
      if (!signal.aborted) await this.#sleep(RETRY_INTERVAL_MS, signal);
    }
  }

  /** Renews all leases of this process. Call it every `HEARTBEAT_INTERVAL_MS`. */
  async renew(): Promise<void> {
    if (this.#held.size === 0) return;
    const sentAt = this.#now();
    try {
      const fences = await this.#database.transact((transaction) => this.#extend(transaction));
      for (const [name, lease] of this.#held) {
        if (fences.get(name) === lease.fence) lease.renewedAt = sentAt;
        else if (lease.renewedAt < sentAt) this.#lose(name);
      }
    } catch {
      // Whether the database has renewed them is unknown; it has not done so before the last success.
    }
    for (const [name, { renewedAt }] of this.#held) if (this.#now() - renewedAt >= LEASE_MS) this.#lose(name);
  }

  /**
   * Fails unless this process still has every lease that it believes to have: what it writes is valid only then.
   * @param transaction that of the writes
   */
  async assertHeld(transaction: Kysely<IndexTables>): Promise<void> {
    if (this.#held.size === 0) return;
    const names = [...this.#held.keys()];
    const rows = await transaction.selectFrom("leases").select(["name", "fence"]).where("name", "in", names).execute();
    const fences = new Map(rows.map(({ name, fence }) => [name, fence]));
    if (names.every((name) => fences.get(name) === this.#held.get(name)?.fence)) return;
    for (const name of names) this.#lose(name);
    throw new Error("another process has taken over the index");
  }

  /** Returns the names of the leases that this process holds. */
  list(): readonly string[] {
    return [...this.#held.keys()];
  }

  /** @returns the row of the lease, which has its holder */
  #tryAcquire(name: string) {
    const { dialect } = this.#database;
    const row = { holder: this.#holder, host: hostname(), pid: process.pid, expires_at: dialect.timeAfter(LEASE_MS) };
    return this.#database.transact(async (transaction) => {
      await transaction
        .insertInto("leases")
        .values({ name, ...row, fence: 1 })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet((eb) => ({ ...row, fence: eb("leases.fence", "+", 1) }))
            .where((eb) =>
              eb.or([eb("leases.expires_at", "<=", dialect.timeAfter(0)), eb("leases.holder", "=", row.holder)]),
            ),
        )
        .execute();
      return transaction
        .selectFrom("leases")
        .select(["holder", "host", "pid", "fence"])
        .where("name", "=", name)
        .executeTakeFirstOrThrow();
    });
  }

  /** @returns whether the work has ended by itself */
  async #runUnder(name: string, lease: HeldLease, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    this.#held.set(name, lease);
    try {
      await work(lease.scope.signal);
      return this.#held.get(name) === lease;
    } finally {
      lease.scope.cancel();
      if (this.#held.get(name) === lease) this.#held.delete(name);
      await this.#expire(name, lease);
    }
  }

  async #expire(name: string, { fence }: HeldLease): Promise<void> {
    const expire = async (transaction: Kysely<IndexTables>): Promise<void> => {
      await transaction
        .updateTable("leases")
        .set({ expires_at: this.#database.dialect.timeAfter(0) })
        .where("name", "=", name)
        .where("holder", "=", this.#holder)
        .where("fence", "=", fence)
        .execute();
    };
    // If this fails, the lease expires.
    await this.#database.transact(expire).catch(() => {});
  }

  /** @returns the fences of the renewed leases by name */
  async #extend(transaction: Kysely<IndexTables>): Promise<ReadonlyMap<string, number>> {
    const { dialect } = this.#database;
    const rows = await transaction
      .updateTable("leases")
      .set({ expires_at: dialect.timeAfter(LEASE_MS) })
      .where("holder", "=", this.#holder)
      .where("expires_at", ">", dialect.timeAfter(0))
      .returning(["name", "fence"])
      .execute();
    return new Map(rows.map((row) => [row.name, row.fence]));
  }

  #lose(name: string): void {
    this.#held.get(name)?.scope.cancel();
    this.#held.delete(name);
  }
}

function toHolder({ pid, host }: Required<LeaseHolder>): LeaseHolder {
  return host === hostname() ? { pid } : { pid, host };
}
