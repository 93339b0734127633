import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { RemoteIndex } from "../../../../src/transfers/index/store/postgres/remote-index.js";
import type { TransferIndexReader } from "../../../../src/transfers/index/store/transfer-index.js";
import type { TransferResolverOptions } from "../../../../src/transfers/resolver.js";
import { createRemoteIndexResolver } from "../../../../src/transfers/sources/remote-index-resolver.js";
import type { LookupContext, TransferQuery } from "../../../../src/transfers/sources/transfer-source.js";
import {
  createChainAccess,
  createLookupContext,
  createSentTransfer,
  createStatus,
  defaultDelivery,
  getChain,
  repeatedByteHash,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const NOW = 1_700_100_000_000;
const mainnet = getNetwork("mainnet");
const sent = createSentTransfer();
const byId: TransferQuery = { transferId: sent.id, transactionHash: undefined };
const fromChains = createStatus({ source: "chain" });

interface Setup {
  /** What the index knows of the transfer. */
  readonly stored?: { readonly delivery: typeof defaultDelivery | undefined; readonly observedAtMs?: number };
  readonly isAway?: boolean;
  readonly query?: TransferQuery;
  readonly context?: Partial<LookupContext>;
}

/** Looks a transfer up and returns what the resolver of the other sources was told of the index. */
async function resolve({ stored, isAway = false, query = byId, context = {} }: Setup) {
  const coverage = (slug: string) => ({
    fromBlock: slug === "gnosis" ? 1 : 0,
    toBlock: 1_000,
    fromTimestamp: 0,
    observedAtMs: stored?.observedAtMs ?? NOW,
    finalizedBlock: 900,
  });
  const transfers = stored && [
    {
      sent,
      delivery: stored.delivery,
      isFinal: true,
      isUnambiguous: true,
      otherTransferIds: [repeatedByteHash("05")],
      sourceCoverage: coverage("optimism"),
      destinationCoverage: coverage("arbitrum"),
    },
  ];
  let isReading = false;
  const read = <T>(value: T): T => {
    if (!isReading) throw new Error("the index can only be read while it answers");
    return value;
  };
  const reader: TransferIndexReader = {
    findByTransactionHash: () => read(transfers ?? []),
    findByTransferId: () => read(transfers ?? []),
    readPage: () => ({ entries: [], next: undefined, rows: 0 }),
    getCoverage: (slug) => read(slug === "base" ? undefined : coverage(slug)),
    close: () => {},
  };
  let reads = 0;
  const remote: RemoteIndex = {
    async read(ask) {
      reads += 1;
      if (isAway) return undefined;
      isReading = true;
      const value = ask(reader);
      isReading = false;
      return { value };
    },
  };
  const told: TransferResolverOptions["index"][] = [];
  const resolver = createRemoteIndexResolver({
    remote,
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => NOW,
    createResolver: (index) => {
      told.push(index);
      return { resolve: async () => fromChains };
    },
  });
  const lookupContext = createLookupContext(context);
  const status = await resolver.resolve(query, lookupContext);
  const [index] = told;
  return { status, told, reads, index, lookupContext };
}

describe("a transfer that the index knows", () => {
  test("is answered from it, without the other sources", async () => {
    const { status, told } = await resolve({ stored: { delivery: defaultDelivery } });
    expect(status).toMatchObject({ source: "index", state: "BONDED", sent: { id: sent.id } });
    expect(told).toEqual([]);
  });

  test("is answered by the others with its final send where the index does not know whether it was delivered", async () => {
    const { status, told, index, lookupContext } = await resolve({
      stored: { delivery: undefined, observedAtMs: NOW - 60_000 },
    });
    expect(status).toBe(fromChains);
    expect(told).toHaveLength(1);
    expect(index?.findFinalizedSend(byId, lookupContext)).toEqual({
      transfer: sent,
      otherTransferIds: [repeatedByteHash("05")],
    });
  });
});

test("what the index does not know is left to the others, with the blocks in which it certainly was not sent", async () => {
  const { status, index, lookupContext } = await resolve({});
  expect(status).toBe(fromChains);
  expect(index?.findFinalizedSend(byId, lookupContext)).toBeUndefined();
  const getLastSearchedBlock = index?.getLastSearchedBlock(lookupContext);
  expect(["optimism", "gnosis", "base"].map((slug) => getLastSearchedBlock?.(getChain(slug)))).toEqual([900, -1, -1]);
  expect(getLastSearchedBlock?.({ ...getChain("optimism"), slug: "new" })).toBe(-1);
});

describe("the other sources are told of no index", () => {
  test("while it does not answer", async () => {
    const { status, told } = await resolve({ isAway: true, stored: { delivery: defaultDelivery } });
    expect(status).toBe(fromChains);
    expect(told).toEqual([undefined]);
  });

  test("in another network, where it is not asked", async () => {
    const network = getNetwork("goerli");
    const { told, reads } = await resolve({ context: { network }, stored: { delivery: defaultDelivery } });
    expect([told, reads]).toEqual([[undefined], 0]);
  });
});

test("an index over whose chains a caller brings its own endpoint says nothing of blocks", async () => {
  const { status, index, lookupContext } = await resolve({
    context: { chains: createChainAccess([], ["optimism"]) },
    stored: { delivery: defaultDelivery },
  });
  expect(status).toBe(fromChains);
  expect(index?.getLastSearchedBlock(lookupContext)).toBeUndefined();
  expect(index?.findFinalizedSend(byId, lookupContext)).toBeUndefined();
});

test("an error that is not the index's reaches the caller", async () => {
  const remote: RemoteIndex = { read: () => Promise.reject(unavailableError("a chain")) };
  const resolver = createRemoteIndexResolver({
    remote,
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => NOW,
    createResolver: () => ({ resolve: async () => fromChains }),
  });
  await expect(resolver.resolve(byId, createLookupContext())).rejects.toThrow("a chain is down");
});
