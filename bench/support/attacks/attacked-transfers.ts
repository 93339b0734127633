import { ContractRegistry } from "../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { EVENT_TOPICS } from "../../../src/hop/transfer-events.js";
import { ATTACKED_HEAD, type AttackedChains } from "../../../test/support/attacks/attacked-chains.js";

const network = getNetwork("mainnet");
const contracts = new ContractRegistry(network);
const word = (value: number | bigint | string): string =>
  (typeof value === "string" ? value.replace("0x", "") : value.toString(16)).padStart(64, "0");
const DEADLINE = 4_000_000_000;
const AMOUNT = 5_000_000n;

/** Hash of a transaction that no chain has. */
export const unknownHash = (index: number): string => `0x${"c0de".repeat(15)}${index.toString(16).padStart(4, "0")}`;

/** Adds a transfer of USDT from Polygon to Arbitrum that was sent, but not delivered. Returns its transaction's hash. */
export function addPendingTransfer(chains: AttackedChains): string {
  const hash = `0x${"7a".repeat(32)}`;
  const topics = [EVENT_TOPICS.transferSent, `0x${"1d".repeat(32)}`, `0x${word(42_161)}`, `0x${word("ab".repeat(20))}`];
  // amount, transferNonce, bonderFee, index, amountOutMin, deadline
  const data = `0x${[AMOUNT, "99".repeat(32), 1_000n, 0, AMOUNT - 10_000n, DEADLINE].map(word).join("")}`;
  const block = ATTACKED_HEAD - 50;
  chains.add({ slug: "polygon", hash, block, logs: [{ address: findBridge("USDT", "polygon"), topics, data }] });
  return hash;
}

/** Recipient of a transfer from L1, different for each index. */
const recipientOf = (index: number): string => `0x${word(0xf000_0000 + index)}`;
const RELAYER = `0x${word("de".repeat(20))}`;
const valuesOfTransfer = `0x${[AMOUNT, AMOUNT - 10_000n, DEADLINE, 0].map(word).join("")}`;

/** Adds a transfer of USDT from Ethereum to Optimism that was sent, but not completed. Returns its transaction's hash. */
export function addPendingTransferFromL1(chains: AttackedChains, index: number): string {
  const hash = `0x${word(0xe7_0000 + index)}`;
  const log = {
    address: findBridge("USDT", "ethereum"),
    topics: [EVENT_TOPICS.transferSentToL2, `0x${word(10)}`, recipientOf(index), RELAYER],
    data: valuesOfTransfer,
  };
  chains.add({ slug: "ethereum", hash, block: ATTACKED_HEAD - 30, logs: [log] });
  return hash;
}

/**
 * Forges a transaction on Optimism that completed many transfers from L1, each of other values, so that each needs a search
 * of its own. The first was really sent: only then are the others searched for at the same time, as its siblings.
 * @param attacker chains that only the attacker names
 * @param operator chains of the service, where the first transfer was sent
 */
export function forgeCompletions(attacker: AttackedChains, operator: AttackedChains, count: number): string {
  const hash = `0x${"f0".repeat(32)}`;
  const bridge = findBridge("USDT", "optimism");
  const logs = Array.from({ length: count }, (_, index) => ({
    address: bridge,
    topics: [EVENT_TOPICS.transferFromL1Completed, recipientOf(index), RELAYER],
    data: valuesOfTransfer,
  }));
  attacker.add({ slug: "optimism", hash, block: ATTACKED_HEAD - 10, logs });
  addPendingTransferFromL1(operator, 0);
  return hash;
}

function findBridge(token: string, slug: string): string {
  const chain = network.chains.get(slug);
  const address = chain && contracts.findBridge(token, chain);
  if (address === undefined) throw new Error(`no bridge of ${token} on ${slug}`);
  return address;
}
