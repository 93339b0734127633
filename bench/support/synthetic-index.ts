import { randomBytes } from "node:crypto";
import { networkOf } from "../../src/hop/networks.js";
import { openIndex } from "../../src/transfers/index/store/open-index.js";
import type { DeliveryRow, SendRow } from "../../src/transfers/index/store/schema.js";

/** What stands in an index that was made up. */
export interface FullIndex {
  readonly transferIds: readonly string[];
  /** Of sending and of delivering transactions. */
  readonly transactionHashes: readonly string[];
}

/** Transfers that are written in one step. */
const batch = 5_000;
const optimism = 10;
const arbitrum = 42161;
const startSeconds = 1_700_000_000;

/** Fills an index with made-up transfers from optimism to arbitrum, all of them delivered: two rows each. */
export async function fillIndex(file: string, transfers: number): Promise<FullIndex> {
  const index = await openIndex(file, networkOf("mainnet"));
  const transferIds: string[] = [];
  const transactionHashes: string[] = [];
  try {
    const first = { number: 1, hash: hex(randomBytes(32)), timestamp: startSeconds };
    await index.store.begin(optimism, first);
    await index.store.begin(arbitrum, first);
    for (let block = 2; transferIds.length < transfers; block++) {
      const pairs = Array.from({ length: batch }, (_, log) => madeUp(block, log));
      for (const { send, delivery } of pairs) {
        transferIds.push(hex(send.arrival_key));
        transactionHashes.push(hex(send.transaction_hash), hex(delivery.transaction_hash));
      }
      const to = { number: block, hash: hex(randomBytes(32)), timestamp: startSeconds + block };
      for (const [chainId, rows] of [
        [optimism, { sends: pairs.map(({ send }) => send), deliveries: [] }],
        [arbitrum, { sends: [], deliveries: pairs.map(({ delivery }) => delivery) }],
      ] as const) {
        const cursor = await index.store.cursor(chainId);
        if (cursor === undefined) throw new Error("the index has no beginning");
        await index.store.advance(cursor, rows, { to, isFinal: true, observedAt: to.timestamp * 1_000 });
      }
    }
  } finally {
    index.close();
  }
  return { transferIds, transactionHashes };
}

function madeUp(block: number, log: number): { send: SendRow; delivery: DeliveryRow } {
  const shared = { block_number: block, log_index: log, token: "USDC.e", arrival_key: randomBytes(32) };
  return {
    send: {
      ...shared,
      chain_id: optimism,
      transaction_hash: randomBytes(32),
      kind: "l2",
      destination_chain_id: arbitrum,
      recipient: randomBytes(20),
      amount: "1234567890123456789",
      amount_out_min: "1234567890123456",
      deadline: String(startSeconds),
      bonder_fee: "123456789012345",
      relayer: null,
      account: randomBytes(20),
      timestamp: startSeconds + block,
    },
    delivery: {
      ...shared,
      chain_id: arbitrum,
      transaction_hash: randomBytes(32),
      bonder: randomBytes(20),
      timestamp: null,
    },
  };
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
