import { randomInt } from "node:crypto";
import { type Kysely, sql } from "kysely";
import type { ChangeRow, IndexTables } from "../schema.js";

/** A change that has no place in the log yet. */
export type Change = Omit<ChangeRow, "sequence" | "nonce">;

/** Changes that are kept for readers; 130 bytes each. Who was away for longer reads all states again. */
export const MAX_CHANGES = 100_000;

const MAX_NONCE = 2 ** 48 - 1;

/**
 * Appends changes to the change log, and removes the oldest ones. Call it last in a transaction: it takes the lock of the
 * counter, which makes transactions commit in the order of their sequences, so that no reader misses one.
 * @param changes an event that was removed and added again is one change
 */
export async function recordChanges(
  transaction: Kysely<IndexTables>,
  changes: readonly Change[],
  rowsPerStatement: number,
): Promise<void> {
  const unique = new Map(changes.map((change) => [getEventKey(change), change]));
  if (unique.size === 0) return;
  const { value } = await transaction
    .updateTable("change_counter")
    .set({ value: sql`value + ${unique.size}` })
    .where("id", "=", 1)
    .returning("value")
    .executeTakeFirstOrThrow();
  const first = Number(value) - unique.size + 1;
  const nonce = randomInt(1, MAX_NONCE);
  const rows = Array.from(unique.values(), (change, index) => ({ ...change, sequence: first + index, nonce }));
  // Of more changes than are kept, those that would be removed at once are not written.
  for (let start = Math.max(0, rows.length - MAX_CHANGES); start < rows.length; start += rowsPerStatement)
    await transaction
      .insertInto("changes")
      .values(rows.slice(start, start + rowsPerStatement))
      .execute();
  await transaction
    .deleteFrom("changes")
    .where("sequence", "<=", Number(value) - MAX_CHANGES)
    .execute();
}

/** Returns a key that is the same for an event before and after a reorg. */
export function getEventKey(event: Pick<Change, "transaction_hash" | "arrival_key">): string {
  return `${Buffer.from(event.transaction_hash).toString("latin1")} ${Buffer.from(event.arrival_key).toString("latin1")}`;
}
