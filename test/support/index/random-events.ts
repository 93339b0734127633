import { bytesToHex } from "../../../src/chain/hex.js";
import { getCctpDomain } from "../../../src/hop/cctp.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { encodeCctpKey } from "../../../src/transfers/index/correlation-key.js";
import type {
  CommitRow,
  DeliveryRow,
  EventPosition,
  EventRows,
  SendRow,
} from "../../../src/transfers/index/database/schema.js";

/** A generator of numbers that repeats with its seed: mulberry32. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const chainIds = [...getNetwork("mainnet").chains.values()].map(({ chainId }) => chainId);
const ETHEREUM = 1;
const domains = [...getNetwork("mainnet").chains.values()].flatMap((chain) => getCctpDomain(chain) ?? []);

/** Events of a few accounts, with few distinct values, so that every coincidence occurs. */
export function createRandomEvents(random: () => number, count: number) {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const bytes = (label: number, kind: number, length = 32): Buffer => {
    const buffer = Buffer.alloc(length, kind);
    buffer.writeUInt32BE(label, length - 4);
    return buffer;
  };
  const small = (limit: number): number => Math.floor(random() * limit);
  const sends: (SendRow & { tree_index: number | null })[] = [];
  const deliveries: DeliveryRow[] = [];
  for (let i = 0; i < count; i++) {
    const kind = pick(["l1", "l2", "l2", "l2", "cctp"] as const);
    const source = kind === "l1" ? ETHEREUM : pick(chainIds);
    const destination = random() < 0.02 ? 999_999 : pick(chainIds.filter((id) => id !== source));
    const key =
      kind === "cctp"
        ? (encodeCctpKey(pick(domains), BigInt(small(20))) ?? Buffer.alloc(12))
        : bytes(kind === "l1" ? small(count / 10) : i, kind === "l1" ? 1 : 2);
    const token = pick(["ETH", "USDC", "USDT"]);
    const timestamp = 1_700_000_000 + small(1_000);
    const transaction = bytes(random() < 0.3 ? small(count / 8) : 1_000_000 + i, 3);
    sends.push({
      chain_id: source,
      block_number: 1 + small(100),
      log_index: i,
      transaction_hash: transaction,
      kind,
      token,
      arrival_key: key,
      destination_chain_id: destination,
      recipient: bytes(small(5), 4, 20),
      amount: String(10n ** 18n + BigInt(i)),
      amount_out_min: "1",
      deadline: String(random() < 0.5 ? 0 : timestamp + 3_600),
      bonder_fee: "5",
      relayer: random() < 0.5 ? null : bytes(1, 5, 20),
      account: bytes(small(5), 4, 20),
      timestamp,
      transfer_nonce: kind === "l2" ? bytes(i, 8) : null,
      tree_index: null,
    });
    for (let times = small(3); times > 0; times--)
      deliveries.push({
        chain_id: random() < 0.9 ? destination : pick(chainIds),
        block_number: 1 + small(100),
        log_index: count + deliveries.length,
        transaction_hash: bytes(random() < 0.3 ? small(count / 8) : 2_000_000 + deliveries.length, 6),
        token: random() < 0.95 ? token : "DAI",
        arrival_key: key,
        bonder: random() < 0.5 ? null : bytes(2, 7, 20),
        timestamp: random() < 0.2 ? null : timestamp + small(600) - 100,
      });
  }
  return { sends, deliveries, commits: commitRandomly(sends, random), chainIds };
}

/** Commits transfers from L2s now and then, and numbers them. */
function commitRandomly(
  sends: readonly (SendRow & { tree_index: number | null })[],
  random: () => number,
): readonly CommitRow[] {
  const commits: CommitRow[] = [];
  const places = new Map<string, number>();
  const isSameBridge = (a: SendRow, b: SendRow): boolean => getBridgeKey(a) === getBridgeKey(b) && b.kind === "l2";
  for (const send of sends.toSorted(comparePositions)) {
    if (send.kind !== "l2") continue;
    const key = getBridgeKey(send);
    const place = places.get(key) ?? 0;
    send.tree_index = place;
    places.set(key, place + 1);
    const { chain_id, block_number, token, destination_chain_id, timestamp } = send;
    // The log of a commit comes last in its block.
    const isLast = !sends.some(
      (other) => isSameBridge(send, other) && other.block_number === block_number && other.log_index > send.log_index,
    );
    if (!isLast || random() < 0.5) continue;
    places.delete(key);
    const [transaction_hash, root_hash] = [Buffer.alloc(32, commits.length), Buffer.alloc(32, commits.length + 1)];
    const position = { chain_id, block_number, log_index: 1_000_000 + commits.length };
    const values = { total_amount: String(commits.length), committed_at: timestamp };
    commits.push({ ...position, transaction_hash, token, destination_chain_id, root_hash, ...values });
  }
  return commits;
}

export function getBridgeKey({ chain_id, token, destination_chain_id }: SendRow | CommitRow): string {
  return `${chain_id} ${token} ${destination_chain_id}`;
}

export function comparePositions(a: EventPosition, b: EventPosition): number {
  return a.block_number - b.block_number || a.log_index - b.log_index;
}

/** Returns the events of a chain in a range of blocks. */
export function selectEvents(events: EventRows, chainId: number, from: number, to: number): EventRows {
  const isSelected = ({ chain_id, block_number }: EventPosition): boolean =>
    chain_id === chainId && block_number >= from && block_number <= to;
  const { sends, deliveries, commits } = events;
  return {
    sends: sends.filter(isSelected),
    deliveries: deliveries.filter(isSelected),
    commits: commits.filter(isSelected),
  };
}

/** Lists everything that a caller can ask for, and something that is not there. */
export function listQueries({ sends, deliveries }: Pick<EventRows, "sends" | "deliveries">) {
  const hex = (rows: readonly Uint8Array[]): string[] => [...new Set(rows.map(bytesToHex))];
  return {
    ids: [
      ...hex([...sends, ...deliveries].map(({ arrival_key }) => arrival_key)).filter((id) => id.length === 66),
      ...Array.from({ length: 22 }, (_, nonce) => String(nonce)),
    ],
    hashes: [...hex([...sends, ...deliveries].map(({ transaction_hash }) => transaction_hash)), `0x${"ab".repeat(32)}`],
    accounts: hex(sends.flatMap(({ account, recipient }) => [account, recipient])),
  };
}
