import type { CursorRow } from "../schema.js";
import type { PostgresPool } from "./connection/connection.js";
import { PostgresFailure } from "./connection/failures.js";

/** What this process knows of the index in PostgreSQL without asking, from a poll every second. */
export interface IndexMonitor {
  /** Returns whether the last statement that needed the server succeeded: otherwise requests do not wait for it. */
  isAvailable(): boolean;
  /** Returns the cursor of a chain as it was at the last poll. */
  getCursor(chainId: number): CursorRow | undefined;
  /** Records that a statement of a request failed; polls tell when the server is back. */
  reportFailure(failure: PostgresFailure): void;
  /** Polls now, or once more after the poll in progress. */
  poll(): void;
  /**
   * Polls until the signal fires.
   * @param onFirstPoll called after the first poll, whether it succeeded or not
   */
  run(signal: AbortSignal, onFirstPoll: () => void): Promise<void>;
}

export interface IndexMonitorOptions {
  readonly pool: PostgresPool;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called when other changes are in the index than at the last poll. */
  readonly onChange: () => void;
  /** Called when the server becomes available or unavailable. */
  readonly onAvailability: (isAvailable: boolean, failure: PostgresFailure | undefined) => void;
}

const POLL_INTERVAL_MS = 1_000;
/** While the server does not answer. */
const RETRY_INTERVAL_MS = 500;
/** A server that takes longer counts as away. */
const POLL_TIMEOUT_MS = 2_000;
const POLL = `
select k.value as sequence, c.chain_id, c.from_block, c.from_timestamp, c.to_block, c.final_to, c.observed_at
from change_counter k left join cursors c on true where k.id = 1`;

type PollRow = { readonly sequence: number } & { readonly [Column in keyof CursorRow]: CursorRow[Column] | null };

export function createIndexMonitor({ pool, sleep, onChange, onAvailability }: IndexMonitorOptions): IndexMonitor {
  let cursors: ReadonlyMap<number, CursorRow> = new Map();
  let sequence = 0;
  let isAvailable = false;
  let wake = (): void => {};
  let isRequested = false;

  function setAvailable(value: boolean, failure?: PostgresFailure): void {
    if (isAvailable === value) return;
    isAvailable = value;
    onAvailability(value, failure);
  }

  async function poll(): Promise<void> {
    try {
      const rows = await withinPollTimeout(pool.query<PollRow>(POLL));
      cursors = new Map(rows.flatMap(({ sequence: _, ...row }) => (isCursor(row) ? [[row.chain_id, row]] : [])));
      setAvailable(true);
      const newest = rows[0]?.sequence ?? 0;
      if (newest === sequence) return;
      sequence = newest;
      onChange();
    } catch (error) {
      setAvailable(false, error as PostgresFailure);
    }
  }

  return {
    isAvailable: () => isAvailable,
    getCursor: (chainId) => cursors.get(chainId),
    reportFailure(failure) {
      // A statement that the server refused says nothing about the next one.
      if (failure.isUnavailable) setAvailable(false, failure);
    },
    poll() {
      isRequested = true;
      wake();
    },
    async run(signal, onFirstPoll) {
      while (!signal.aborted) {
        isRequested = false;
        await poll();
        onFirstPoll();
        if (isRequested) continue;
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const pause = new AbortController();
        const stop = (): void => pause.abort();
        signal.addEventListener("abort", stop);
        await Promise.race([woken, sleep(isAvailable ? POLL_INTERVAL_MS : RETRY_INTERVAL_MS, pause.signal)]);
        signal.removeEventListener("abort", stop);
        stop();
        wake = () => {};
      }
    },
  };
}

function isCursor(row: { readonly [Column in keyof CursorRow]: CursorRow[Column] | null }): row is CursorRow {
  return row.chain_id !== null;
}

async function withinPollTimeout<T>(poll: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PostgresFailure("ETIMEDOUT")), POLL_TIMEOUT_MS);
  });
  poll.catch(() => {});
  try {
    return await Promise.race([poll, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
