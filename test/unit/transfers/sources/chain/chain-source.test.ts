import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import { ServiceError } from "../../../../../src/errors.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import { EVENT_TOPICS, encodeIsTransferIdSpentCall } from "../../../../../src/hop/transfer-events.js";
import type { TransferQuery } from "../../../../../src/transfers/sources/transfer-source.js";
import golden from "../../../../golden/transfers.json" with { type: "json" };
import { createTestChainSource } from "./search-fixtures.js";

type Recorded = (typeof golden.receipts)[keyof typeof golden.receipts];
type Responder = (method: string, params: readonly unknown[]) => unknown;

const mainnet = getNetwork("mainnet");
const recorded: Recorded[] = Object.values(golden.receipts);
const [fromL1, usdt] = golden.transfers;
if (fromL1 === undefined || usdt === undefined) throw new Error("golden transfers are missing");

/** The receipt that sent USDT. */
const sending = recorded.flatMap(({ receipt }) => (receipt.transactionHash === usdt.sourceTxHash ? receipt : []))[0];
if (sending === undefined) throw new Error("the golden receipt is missing");

/** Responds from the recorded receipts as a node of that chain would. */
function goldenChain(slug: string): Responder {
  const ofChain = recorded.filter(({ chain }) => chain === slug);
  return (method, params) => {
    const [first] = params as [string & { topics?: (string | string[] | null)[]; to: string; data: string }];
    const byHash = ofChain.find(({ receipt }) => receipt.transactionHash === first);
    switch (method) {
      case "eth_getTransactionReceipt":
        return byHash === undefined ? null : { ...byHash.receipt, from: senderOf(byHash) };
      case "eth_getTransactionByHash":
        return byHash === undefined ? null : { from: senderOf(byHash) };
      case "eth_getBlockByHash": {
        const block = ofChain.find(({ receipt }) => receipt.blockHash === first);
        if (block === undefined) return null;
        const { blockHash, blockNumber } = block.receipt;
        return { hash: blockHash, number: blockNumber, timestamp: `0x${block.timestamp.toString(16)}` };
      }
      case "eth_getLogs":
        return ofChain
          .flatMap(({ receipt }) => receipt.logs)
          .filter(({ topics }) =>
            (first.topics ?? []).every((wanted, at) => wanted === null || [wanted].flat().includes(topics[at] ?? "")),
          );
      case "eth_call": {
        const spent = golden.transfers.some(
          ({ transferId: id, destinationChain, bondTxHash }) =>
            id !== null && bondTxHash && destinationChain === slug && first.data === encodeIsTransferIdSpentCall(id),
        );
        return `0x${(spent ? 1 : 0).toString().padStart(64, "0")}`;
      }
      default:
        throw new Error(`unexpected ${method}`);
    }
  };
}

function senderOf({ receipt }: Recorded): string {
  const transfer = golden.transfers.find(({ sourceTxHash }) => sourceTxHash === receipt.transactionHash);
  const bonded = golden.transfers.find(({ bondTxHash }) => bondTxHash === receipt.transactionHash);
  return transfer?.from ?? bonded?.bonder ?? `0x${"00".repeat(20)}`;
}

async function find(query: Partial<TransferQuery>, overrides: Record<string, Responder> = {}) {
  const clients = new Map<string, ChainClient>();
  const chains = {
    hasCustomEndpoint: () => false,
    getClient(slug: string): ChainClient {
      const respond = overrides[slug] ?? goldenChain(slug);
      const client = clients.get(slug) ?? {
        slug,
        send: async (method, params) => respond(method, params),
        sendBatch: () => Promise.reject(new Error("transfer lookups send no batches")),
        getLogs: async ({ filter, range }) => ({ result: respond("eth_getLogs", [filter]), range }),
      };
      clients.set(slug, client);
      return client;
    },
  };
  const closing = new AbortController();
  const source = createTestChainSource(() => 12_345, closing.signal);
  const access = { network: mainnet, chains, isPrivate: false };
  const context = { ...access, caller: "a", remainingMs: () => 10_000, signal: closing.signal };
  try {
    return await source.resolve({ transferId: undefined, transactionHash: undefined, ...query }, context);
  } finally {
    closing.abort();
  }
}

const down: Responder = () => {
  throw new ServiceError("UPSTREAM_UNAVAILABLE", "down");
};
const withOverrides =
  (slug: string, methods: Record<string, () => unknown>): Responder =>
  (method, params) =>
    methods[method] === undefined ? goldenChain(slug)(method, params) : methods[method]();
const unavailable = { reason: "UPSTREAM_UNAVAILABLE" };

describe("transfers from chain data", () => {
  test.each(golden.transfers)("finds $kind by hash and by ID", async (transfer) => {
    const id = transfer.transferId ?? transfer.sourceTxHash;
    const transactionHash = transfer.bondTxHash ?? transfer.completedTxHash;
    const { amount, bonderFee, deadline } = transfer;
    const byHash = await find({ transactionHash: transfer.sourceTxHash });
    expect(byHash).toMatchObject({
      state: "BONDED",
      source: "chain",
      observedAtMs: 12_345,
      otherTransferIds: [],
      delivery: { transactionHash, bonder: transfer.bonder?.toLowerCase() },
      sent: {
        id,
        kind: transfer.transferId === null ? "l1" : "l2",
        token: transfer.token,
        source: { chainId: transfer.sourceChainId },
        destination: { chainId: transfer.destinationChainId },
        transactionHash: transfer.sourceTxHash,
        account: transfer.from.toLowerCase(),
        timestamp: transfer.sourceTimestamp,
        blockNumber: transfer.sourceBlock,
        logIndex: transfer.sourceLogIndex,
        event: { amount: BigInt(amount), bonderFee: BigInt(bonderFee), deadline: BigInt(deadline) },
      },
    });
    expect(await find({ transferId: id })).toEqual(byHash);
    expect(await find({ transferId: id, transactionHash: transfer.sourceTxHash })).toEqual(byHash);
  });

  test("finds nothing for an ID that the transaction does not have", async () => {
    const transferId = `0x${"12".repeat(32)}`;
    expect(await find({ transferId, transactionHash: usdt.sourceTxHash })).toBeUndefined();
    expect(await find({ transferId })).toBeUndefined();
    expect(await find({ transactionHash: transferId })).toBeUndefined();
  });

  test.each(golden.transfers)("finds $kind by the delivering transaction", async (transfer) => {
    const byHash = await find({ transactionHash: transfer.sourceTxHash });
    const transactionHash = transfer.bondTxHash ?? transfer.completedTxHash ?? "";
    expect(await find({ transactionHash })).toEqual(byHash);
    expect(await find({ transactionHash, transferId: transfer.transferId ?? transfer.sourceTxHash })).toEqual(byHash);
    expect(await find({ transactionHash, transferId: `0x${"12".repeat(32)}` })).toBeUndefined();
  });

  test("ignores events of foreign contracts", async () => {
    const logs = sending.logs.map((log) => ({ ...log, address: `0x${"34".repeat(20)}` }));
    const lookalike = { ...sending, from: usdt.from, logs };
    const polygon = withOverrides("polygon", { eth_getTransactionReceipt: () => lookalike });
    expect(await find({ transactionHash: usdt.sourceTxHash }, { polygon })).toBeUndefined();
  });

  test("prefers the first send to a known chain among several of a transaction", async () => {
    const log = sending.logs.find(({ topics: [topic] }) => topic === EVENT_TOPICS.transferSent);
    if (log === undefined) throw new Error("no send");
    const transferId = `0x${"77".repeat(32)}`;
    const topics = log.topics.with(1, transferId).with(2, `0x${"0".repeat(60)}ffff`);
    const logs = [{ ...log, logIndex: "0x0", topics }, ...sending.logs];
    const polygon: Responder = (method, params) => {
      if (method !== "eth_getTransactionReceipt") return goldenChain("polygon")(method, params);
      return params[0] === usdt.sourceTxHash ? { ...sending, from: usdt.from, logs } : null;
    };
    expect(await find({ transactionHash: usdt.sourceTxHash }, { polygon })).toMatchObject({
      sent: { id: usdt.transferId },
      otherTransferIds: [transferId],
    });
    await expect(find({ transactionHash: usdt.sourceTxHash, transferId }, { polygon })).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: expect.stringContaining("which is not in the address book") as unknown,
    });
  });

  test("does not report PENDING while the destination is down", async () => {
    await expect(find({ transactionHash: usdt.sourceTxHash }, { arbitrum: down })).rejects.toMatchObject(unavailable);
    await expect(find({ transactionHash: fromL1.sourceTxHash }, { arbitrum: down })).rejects.toMatchObject(unavailable);
  });
});
