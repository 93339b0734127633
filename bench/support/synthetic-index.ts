import { randomBytes } from "node:crypto";
import { getNetwork } from "../../src/hop/networks.js";
import { openIndex } from "../../src/transfers/index/store/open-index.js";
import type { DeliveryRow, SendRow } from "../../src/transfers/index/store/schema.js";

/** Keys of the transfers in a synthetic index. */
export interface SyntheticIndex {
  readonly transferIds: readonly string[];
  /** Hashes of sending and of delivering transactions. */
  readonly transactionHashes: readonly string[];
  /** Addresses that have sent some 1,000 transfers each. */
  readonly accounts: readonly string[];
}

/** Transfers written per transaction. */
const BATCH_SIZE = 5_000;
const OPTIMISM_CHAIN_ID = 10;
const ARBITRUM_CHAIN_ID = 42161;
const TRANSFERS_PER_ACCOUNT = 1_000;
const START_SECONDS = 1_700_000_000;

/** Fills an index with synthetic transfers from optimism to arbitrum, all delivered: two rows each. */
export async function createSyntheticIndex(file: string, transfers: number): Promise<SyntheticIndex> {
  const index = await openIndex(file, getNetwork("mainnet"));
  const transferIds: string[] = [];
  const transactionHashes: string[] = [];
  const accounts = Array.from({ length: Math.ceil(transfers / TRANSFERS_PER_ACCOUNT) }, () => randomBytes(20));
  try {
    const first = { number: 1, hash: toHex(randomBytes(32)), timestamp: START_SECONDS };
    await index.store.initializeCursor(OPTIMISM_CHAIN_ID, first);
    await index.store.initializeCursor(ARBITRUM_CHAIN_ID, first);
    for (let block = 2; transferIds.length < transfers; block++) {
      const pairs = Array.from({ length: BATCH_SIZE }, (_, log) =>
        createTransferRows(block, log, pickAccount(accounts)),
      );
      for (const { send, delivery } of pairs) {
        transferIds.push(toHex(send.arrival_key));
        transactionHashes.push(toHex(send.transaction_hash), toHex(delivery.transaction_hash));
      }
      const to = { number: block, hash: toHex(randomBytes(32)), timestamp: START_SECONDS + block };
      for (const [chainId, rows] of [
        [OPTIMISM_CHAIN_ID, { sends: pairs.map(({ send }) => send), deliveries: [] }],
        [ARBITRUM_CHAIN_ID, { sends: [], deliveries: pairs.map(({ delivery }) => delivery) }],
      ] as const) {
        const cursor = await index.store.readCursor(chainId);
        if (cursor === undefined) throw new Error("the index has no cursor");
        await index.store.advance(cursor, rows, { to, isFinal: true, observedAtMs: to.timestamp * 1_000 });
      }
    }
  } finally {
    index.close();
  }
  return { transferIds, transactionHashes, accounts: accounts.map(toHex) };
}

function pickAccount(accounts: readonly Buffer[]): Buffer {
  return accounts[Math.floor(Math.random() * accounts.length)] ?? randomBytes(20);
}

function createTransferRows(block: number, log: number, account: Buffer): { send: SendRow; delivery: DeliveryRow } {
  const shared = { block_number: block, log_index: log, token: "USDC.e", arrival_key: randomBytes(32) };
  return {
    send: {
      ...shared,
      chain_id: OPTIMISM_CHAIN_ID,
      transaction_hash: randomBytes(32),
      kind: "l2",
      destination_chain_id: ARBITRUM_CHAIN_ID,
      recipient: randomBytes(20),
      amount: "1234567890123456789",
      amount_out_min: "1234567890123456",
      deadline: String(START_SECONDS),
      bonder_fee: "123456789012345",
      relayer: null,
      account,
      timestamp: START_SECONDS + block,
    },
    delivery: {
      ...shared,
      chain_id: ARBITRUM_CHAIN_ID,
      transaction_hash: randomBytes(32),
      bonder: randomBytes(20),
      timestamp: null,
    },
  };
}

function toHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
