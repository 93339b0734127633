import { describe, expect, onTestFinished, test } from "vitest";
import { ExplorerClient } from "../../../../src/hop/explorer-client.js";
import { getNetwork, type NetworkSlug } from "../../../../src/hop/networks.js";
import { ExplorerSource } from "../../../../src/transfers/sources/explorer-source.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
import {
  createExplorerRecord,
  type ExplorerRecordJson,
  startExplorerStub,
} from "../../../support/stubs/explorer-stub.js";
import {
  createLookupContext,
  createSentTransfer,
  repeatedByteHash as hash,
} from "../../../support/stubs/transfer-fixtures.js";

const getClient = (): never => {
  throw new Error("the explorer source must not use the chains");
};
const createContext = (network: NetworkSlug = "mainnet"): LookupContext =>
  createLookupContext({ network: getNetwork(network), chains: { getClient, hasCustomEndpoint: () => false } });

async function setup(...records: readonly ExplorerRecordJson[]) {
  const stub = await startExplorerStub(records);
  const explorer = new ExplorerClient(stub.url, () => 0);
  onTestFinished(() => explorer.close());
  onTestFinished(stub.close);
  const source = new ExplorerSource(explorer, () => 1_700_000_000_000);
  return {
    stub,
    byHash: (hash: string, id?: string) => source.resolve({ transactionHash: hash, transferId: id }, createContext()),
    byId: (id: string) => source.resolve({ transactionHash: undefined, transferId: id }, createContext()),
    source,
  };
}

const id = hash("1a");
const sendingHash = hash("2b");
const bondingHash = hash("3c");
const pending = { bonded: false, bondTransactionHash: "", bonderAddress: "" };
const fromL1 = { sourceChainId: 1, sourceChainSlug: "ethereum", transferId: `${sendingHash}0000002a` };
/** The sending transaction of the other records delivers this one. */
const deliveredBySend = { transferId: hash("0f"), transactionHash: hash("4d"), bondTransactionHash: sendingHash };
const cctp = { token: "USDC", transferId: "123", amountOutMin: null, deadline: 0 };

describe("the status from the explorer", () => {
  test("contains everything that the record has, and is not final", async () => {
    const { byId } = await setup(createExplorerRecord());
    const event = { ...createSentTransfer().event, deadline: 1662159408n };
    expect(await byId(id)).toEqual({
      sent: { ...createSentTransfer({ token: "DAI", timestamp: 1661554612, event }), blockNumber: 0, logIndex: 0 },
      delivery: { transactionHash: bondingHash, blockNumber: undefined, bonder: `0x${"e3".repeat(20)}` },
      state: "BONDED",
      otherTransferIds: [],
      source: "explorer",
      observedAtMs: 1_700_000_000_000,
      isFinal: false,
      priceUsd: 1.002,
    });
  });

  const toL1 = { ...pending, destinationChainId: 1, destinationChainSlug: "ethereum" };
  const unknownDelivery = { transactionHash: undefined, bonder: undefined };
  const withoutBonder = { transactionHash: bondingHash, bonder: undefined };
  const sentFromL1 = { kind: "l1", id: sendingHash, event: { transferId: undefined } };
  const sentOverCctp = { kind: "cctp", id: "123", event: { deadline: 0n } };
  test.each<[string, ExplorerRecordJson, object]>([
    ["pending", pending, { state: "PENDING", delivery: undefined }],
    ["unbondable", toL1, { state: "UNBONDABLE", delivery: undefined }],
    [
      "delivered, transaction unknown",
      { bondTransactionHash: null, bonderAddress: null },
      { state: "BONDED", delivery: unknownDelivery },
    ],
    [
      "from L1, with the hash as its ID and no bonder",
      fromL1,
      { state: "BONDED", sent: sentFromL1, delivery: withoutBonder },
    ],
    ["over CCTP, without a bonder", cctp, { state: "BONDED", sent: sentOverCctp, delivery: { bonder: undefined } }],
    ["without a price", { tokenPriceUsd: null, amountUsd: null }, { priceUsd: undefined }],
  ])("can be %s", async (_, overrides, expected) => {
    const { byHash } = await setup(createExplorerRecord(overrides));
    expect(await byHash(sendingHash)).toMatchObject(expected);
  });

  test("is unavailable while the explorer is down, and for networks other than mainnet", async () => {
    const { byId, stub, source } = await setup(createExplorerRecord());
    const query = { transactionHash: undefined, transferId: id };
    await expect(source.resolve(query, createContext("goerli"))).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the explorer covers mainnet only",
    });
    expect(stub.queries).toEqual([]);
    stub.mode = "down";
    await expect(byId(id)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  });
});

describe("a transfer is found", () => {
  test("by its ID, but not by a transaction hash in place of the ID", async () => {
    const other = createExplorerRecord({ ...fromL1, transactionHash: hash("4d") });
    const { byId } = await setup(createExplorerRecord(), other);
    expect(await byId(id)).toMatchObject({ sent: { id } });
    expect(await byId(sendingHash)).toBeUndefined();
    expect(await byId(bondingHash)).toBeUndefined();
    expect(await byId(hash("4d"))).toMatchObject({ sent: { id: hash("4d"), kind: "l1" } });
  });

  test("by the hash of the sending or delivering transaction", async () => {
    const { byHash } = await setup(createExplorerRecord());
    expect(await byHash(sendingHash)).toMatchObject({ sent: { id } });
    expect(await byHash(bondingHash)).toMatchObject({ sent: { id } });
    expect(await byHash(id)).toBeUndefined();
  });

  test("by hash and ID together", async () => {
    const { byHash } = await setup(createExplorerRecord(), createExplorerRecord({ transferId: hash("0f") }));
    expect(await byHash(sendingHash, id)).toMatchObject({ sent: { id }, otherTransferIds: [hash("0f")] });
    expect(await byHash(sendingHash, hash("0f"))).toMatchObject({ sent: { id: hash("0f") }, otherTransferIds: [id] });
    expect(await byHash(sendingHash, hash("77"))).toBeUndefined();
    expect(await byHash(bondingHash, id)).toMatchObject({ sent: { id } });
  });

  test("with its siblings in a stable order", async () => {
    const ids = [hash("9f"), hash("11"), hash("44")];
    const { byHash, byId } = await setup(...ids.map((transferId) => createExplorerRecord({ transferId })));
    const first = { sent: { id: hash("11") }, otherTransferIds: [hash("44"), hash("9f")] };
    expect(await byHash(sendingHash)).toMatchObject(first);
    // A query by ID returns this record only.
    expect(await byId(hash("11"))).toMatchObject({ ...first, otherTransferIds: [] });
  });

  test("with the siblings that the same transaction delivered", async () => {
    const sibling = createExplorerRecord({ transferId: hash("0f"), transactionHash: hash("4d") });
    const { byHash } = await setup(createExplorerRecord(), sibling);
    expect(await byHash(bondingHash)).toMatchObject({ sent: { id: hash("0f") }, otherTransferIds: [id] });
    expect(await byHash(sendingHash)).toMatchObject({ sent: { id }, otherTransferIds: [] });
  });

  test("as one of several from L1 in a transaction, which share an ID", async () => {
    const ids = ["2b", "2a"].map((log) => `${sendingHash}000000${log}`);
    const both = ids.map((transferId) => createExplorerRecord({ ...fromL1, transferId }));
    const { byId } = await setup(createExplorerRecord(deliveredBySend), ...both);
    expect(await byId(sendingHash)).toMatchObject({ sent: { id: sendingHash }, otherTransferIds: [sendingHash] });
  });

  test("as sent rather than as delivered by the same transaction", async () => {
    const { byHash } = await setup(createExplorerRecord(deliveredBySend), createExplorerRecord());
    expect(await byHash(sendingHash)).toMatchObject({ sent: { id }, otherTransferIds: [] });
    expect(await byHash(sendingHash, hash("0f"))).toBeUndefined();
  });

  test("by its CCTP nonce if only one source chain uses it", async () => {
    const other = { ...cctp, sourceChainId: 137, sourceChainSlug: "polygon", transactionHash: hash("4d") };
    const { byId, byHash, stub } = await setup(createExplorerRecord(cctp));
    expect(await byId("123")).toMatchObject({ sent: { id: "123", kind: "cctp" } });
    stub.records = [createExplorerRecord(cctp), createExplorerRecord(other)];
    await expect(byId("123")).rejects.toMatchObject({ reason: "INVALID_PARAMETER", field: "transferId" });
    expect(await byHash(hash("4d"), "123")).toMatchObject({ sent: { source: { slug: "polygon" } } });
  });
});
