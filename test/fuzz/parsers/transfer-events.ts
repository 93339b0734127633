import assert from "node:assert/strict";
import { utils } from "ethers";
import type { Log } from "../../../src/chain/json-rpc/parse-results.js";
import { decodeBurnMessageSender } from "../../../src/hop/cctp.js";
import { decodeReceivedEvent, decodeSentEvent, hasSameTransferFields } from "../../../src/hop/transfer-events.js";
import { createByteSource } from "./byte-source.js";

const abi = new utils.Interface([
  "event TransferSent(bytes32 indexed transferId, uint256 indexed chainId, address indexed recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee, uint256 index, uint256 amountOutMin, uint256 deadline)",
  "event TransferSentToL2(uint256 indexed chainId, address indexed recipient, uint256 amount, uint256 amountOutMin, uint256 deadline, address indexed relayer, uint256 relayerFee)",
  "event CCTPTransferSent(uint64 indexed cctpNonce, uint256 indexed chainId, address indexed recipient, uint256 amount, uint256 bonderFee)",
  "event WithdrawalBonded(bytes32 indexed transferId, uint256 amount)",
  "event Withdrew(bytes32 indexed transferId, address indexed recipient, uint256 amount, bytes32 transferNonce)",
  "event TransferFromL1Completed(address indexed recipient, uint256 amount, uint256 amountOutMin, uint256 deadline, address indexed relayer, uint256 relayerFee)",
  "event MessageReceived(address indexed caller, uint32 sourceDomain, uint64 indexed nonce, bytes32 sender, bytes messageBody)",
]);
const TOPICS = Object.values(abi.events).map((event) => abi.getEventTopic(event));
const BURN_MESSAGE_BYTES = 132;

/** Logs: the events that ethers decodes are decoded to the same values, and nothing throws. */
export function fuzz(data: Buffer): void {
  const log = readLog(data);
  const sent = decodeSentEvent(log);
  const received = decodeReceivedEvent(log);
  const burner = decodeBurnMessageSender(log);
  assert.ok(sent === undefined || received === undefined);
  if (received?.kind === "l1") assert.ok(hasSameTransferFields(received, received));
  if (burner !== undefined) assert.match(burner, /^0x[0-9a-f]{40}$/);
  const event = parseByEthers(log);
  if (event === undefined) return;
  const { args, name } = event;
  const uint = (key: string): bigint => args[key].toBigInt();
  const address = (key: string): string => args[key].toLowerCase();
  const sums = () => ({ amount: uint("amount"), amountOutMin: uint("amountOutMin"), deadline: uint("deadline") });
  const destination = () => ({ destinationChainId: Number(uint("chainId")), recipient: address("recipient") });
  switch (name) {
    case "TransferSent": {
      const expected = { ...sums(), ...destination(), transferId: args.transferId, bonderFee: uint("bonderFee") };
      assert.deepEqual(sent, { ...expected, relayer: undefined });
      break;
    }
    case "TransferSentToL2": {
      const expected = { ...sums(), ...destination(), bonderFee: uint("relayerFee"), relayer: address("relayer") };
      assert.deepEqual(sent, { ...expected, transferId: undefined });
      break;
    }
    case "CCTPTransferSent":
      assert.deepEqual(sent, {
        ...destination(),
        transferId: String(uint("cctpNonce")),
        amount: uint("amount"),
        bonderFee: uint("bonderFee"),
        ...{ amountOutMin: 0n, deadline: 0n, relayer: undefined },
      });
      break;
    case "TransferFromL1Completed":
      assert.deepEqual(received, {
        ...sums(),
        ...{ kind: "l1", recipient: address("recipient"), relayer: address("relayer") },
        bonderFee: uint("relayerFee"),
      });
      break;
    case "MessageReceived": {
      assert.deepEqual(received, { kind: "cctp", sourceDomain: args.sourceDomain, nonce: uint("nonce") });
      const body = args.messageBody as string;
      if (utils.hexDataLength(body) >= BURN_MESSAGE_BYTES) {
        assert.equal(burner, utils.hexDataSlice(body, BURN_MESSAGE_BYTES - 20, BURN_MESSAGE_BYTES));
      }
      break;
    }
    default:
      assert.deepEqual(received, { kind: "l2", transferId: args.transferId, isBond: name === "WithdrawalBonded" });
  }
}

function readLog(data: Buffer): Log {
  const source = createByteSource(data);
  const head = source.takeByte();
  const topic0 = TOPICS[head & 7] ?? `0x${"00".repeat(32)}`;
  const others = Array.from({ length: (head >> 3) & 3 }, () => readWord(source.takeByte(), source.takeBytes(32)));
  return {
    address: `0x${"a1".repeat(20)}`,
    topics: [topic0, ...others],
    data: (head & 32) === 0 ? utils.hexlify(source.takeRest()) : joinWords(source.takeRest()),
    blockNumber: 1,
    blockHash: `0x${"00".repeat(32)}`,
    logIndex: 0,
    transactionHash: `0x${"00".repeat(32)}`,
  };
}

/** Returns a word for each byte, all of them different: a reader that takes another word gets another value. */
function joinWords(bytes: Buffer): string {
  return `0x${[...bytes].map((byte, index) => (256 * (index + 1) + byte).toString(16).padStart(64, "0")).join("")}`;
}

/** Most topics are short numbers or addresses. */
function readWord(head: number, bytes: Buffer): string {
  const length = head % 3 === 0 ? 32 : head % 3 === 1 ? 20 : 8;
  return `0x${bytes.subarray(0, length).toString("hex").padStart(64, "0")}`;
}

/** Decodes a log as ethers does; undefined for one that ethers refuses, and for one that no contract emits. */
function parseByEthers({ topics, data }: Log): utils.LogDescription | undefined {
  try {
    const event = abi.parseLog({ topics: [...topics], data });
    // Contracts write nothing but the shortest encoding.
    const { topics: canonicalTopics, data: canonicalData } = abi.encodeEventLog(event.eventFragment, [...event.args]);
    return canonicalTopics.join() === topics.join() && data.startsWith(canonicalData) ? event : undefined;
  } catch {
    return undefined;
  }
}
