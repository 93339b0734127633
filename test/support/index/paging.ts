import { expect } from "vitest";
import { bytesToHex } from "../../../src/chain/hex.js";
import type { SendRow } from "../../../src/transfers/index/database/schema.js";
import type { ListPosition, PageRequest, TransferPage } from "../../../src/transfers/index/list/page-statement.js";
import { LIST_START } from "../../../src/transfers/index/list/transfer-lister.js";

// Lists whose pages every database has to cut exactly, where only the last of the sort keys differs.

/** Filters by each property alone, and by all. */
export const PAGE_FILTERS: readonly PageRequest["filter"][] = [
  {},
  { token: "ETH" },
  { token: "none" },
  { sourceChainId: 1 },
  { destinationChainId: 10 },
  { isDelivered: true },
  { isDelivered: false },
  { token: "USDC", sourceChainId: 10, destinationChainId: 42_161, isDelivered: true },
];

const ETHEREUM = 1;
const ARBITRUM = 42_161;
export const TIED_CHAIN_IDS = [ETHEREUM, 10, ARBITRUM];

const ACCOUNT = Buffer.alloc(20, 1);
const OTHER = Buffer.alloc(20, 2);

/**
 * Creates sends of one account over three seconds: in each, several chains and transactions, several sends of a transaction, and equal
 * sends of a transaction from L1, which differ by their log alone.
 */
export function createTiedSends(): readonly SendRow[] {
  const sends: SendRow[] = [];
  const add = (chainId: number, second: number, transaction: number, key: number, sides: number): void => {
    const bytes = (...values: number[]): Buffer => Buffer.from([...values, ...Buffer.alloc(32 - values.length)]);
    sends.push({
      chain_id: chainId,
      block_number: 1 + second,
      log_index: sends.length,
      transaction_hash: bytes(second % 2, transaction, chainId % 251),
      kind: chainId === ETHEREUM ? "l1" : "l2",
      token: "ETH",
      arrival_key: bytes(key, second, transaction, chainId % 251),
      destination_chain_id: chainId === ARBITRUM ? 10 : ARBITRUM,
      recipient: sides === 0 ? OTHER : ACCOUNT,
      ...{ amount: "1000", amount_out_min: "0", deadline: "0", bonder_fee: "0", relayer: null },
      account: sides === 1 ? OTHER : ACCOUNT,
      timestamp: 1_700_000_000 + second,
      ...{ transfer_nonce: null, tree_index: null },
    });
  };
  for (let second = 0; second < 3; second++)
    for (const chainId of TIED_CHAIN_IDS)
      for (const transaction of [7, 5])
        for (const key of chainId === ETHEREUM ? [3, 3, 3] : [2, 9, 4]) add(chainId, second, transaction, key, key % 3);
  return sends;
}

/** Fails unless the pages of the account, whatever their size, contain all of its sends in their order, each once. */
export async function expectExactPages(
  readPage: (request: PageRequest) => TransferPage | Promise<TransferPage>,
  sends: readonly SendRow[],
): Promise<void> {
  const expected = sends.toSorted(compareNewestFirst).map(describeSend);
  for (const size of [1, 2, 3, 5, sends.length, sends.length + 1]) {
    const listed: string[] = [];
    for (let after: ListPosition | undefined = LIST_START; after !== undefined; ) {
      const request: PageRequest = { account: bytesToHex(ACCOUNT), after, rows: size, limit: size, filter: {} };
      const { entries, next } = await readPage(request);
      expect(entries.length).toBeLessThanOrEqual(size);
      // Pages that do not advance would never end.
      expect(listed.length).toBeLessThanOrEqual(sends.length);
      for (const { position } of entries)
        listed.push(
          `${position.timestamp} ${position.transactionHash} ${position.correlationKey} ${position.logIndex}`,
        );
      after = next;
    }
    expect(listed, `pages of ${size}`).toEqual(expected);
  }
}

const describeSend = (row: SendRow): string =>
  `${row.timestamp} ${bytesToHex(row.transaction_hash)} ${bytesToHex(row.arrival_key)} ${row.log_index}`;

function compareNewestFirst(a: SendRow, b: SendRow): number {
  return (
    b.timestamp - a.timestamp ||
    Buffer.compare(b.transaction_hash, a.transaction_hash) ||
    Buffer.compare(b.arrival_key, a.arrival_key) ||
    b.log_index - a.log_index
  );
}
