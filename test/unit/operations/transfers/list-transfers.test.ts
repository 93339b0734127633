import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ListTransfersRequestSchema, type ListTransfersResponse } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { createListTransfers } from "../../../../src/operations/transfers/list-transfers.js";
import type { PriceTable } from "../../../../src/prices/token-prices.js";
import type { DetailsOutcome, TransferDetails } from "../../../../src/transfers/details/transfer-details.js";
import type { ListPosition } from "../../../../src/transfers/index/list/page-statement.js";
import type { TransferFilter, TransferLister } from "../../../../src/transfers/index/list/transfer-lister.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import { createChainAccess, createStatus, repeatedByteHash } from "../../../support/stubs/transfer-fixtures.js";
import { createRecordingContext } from "../call-context.js";

const ACCOUNT = `0x${"aB".repeat(20)}`;
const NEXT: ListPosition = {
  timestamp: 1_700_000_000,
  transactionHash: repeatedByteHash("11"),
  correlationKey: repeatedByteHash("22"),
  logIndex: 3,
};

interface Setup {
  readonly hasIndex?: boolean;
  readonly transfers?: readonly TransferStatus[];
  readonly next?: ListPosition;
  /** Whether the prices are cached. */
  readonly prices?: "cached" | "later" | "never";
  /** Outcomes of reading details. */
  readonly outcomes?: readonly DetailsOutcome[];
  /** Outcome of counting a call as several requests. */
  readonly counted?: Promise<void>;
}

function setup({ hasIndex = true, transfers = [], next, prices = "cached", outcomes = [], counted }: Setup = {}) {
  const lists: { filter: TransferFilter; after: ListPosition | undefined; pageSize: number }[] = [];
  const counts: number[] = [];
  const lister: Pick<TransferLister, "isIndexed" | "list" | "readCoverage"> = {
    isIndexed: (network) => network === getNetwork("mainnet"),
    list(filter, after, pageSize) {
      lists.push({ filter, after, pageSize });
      return { transfers, next };
    },
    readCoverage: () => ({ fromSeconds: 1_690_000_000, untilSeconds: 1_699_000_000 }),
  };
  const table: PriceTable = {
    getUsdPrice(token) {
      if (token === "ETH") return 2;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "no price");
    },
    getOrigin: () => ({ source: "FIXED", updatedAtSeconds: 0 }),
  };
  const operation = createListTransfers({
    lister: hasIndex ? lister : undefined,
    prices: {
      peekTable: () => (prices === "cached" ? table : undefined),
      getTable: () => (prices === "later" ? Promise.resolve(table) : Promise.reject(new Error("no prices"))),
    },
    chains: { forNetwork: () => createChainAccess([]) },
    details: { find: () => outcomes },
    attestations: undefined,
  });
  const { context, recorded } = createRecordingContext({
    countAsRequests(count) {
      counts.push(count);
      return counted;
    },
  });
  const list = (request: MessageInitShape<typeof ListTransfersRequestSchema>) =>
    operation(create(ListTransfersRequestSchema, { account: ACCOUNT, ...request }), context);
  return { list, lists, policies: recorded.cache, counts };
}

test("passes on the filters, and the account in lower case", async () => {
  const { list, lists, policies } = setup();
  expect(await list({ state: "PENDING", token: "weth", fromChain: "polygon", toChain: "base", pageSize: 7 })).toEqual({
    $typeName: "hop.bridge.v1.ListTransfersResponse",
    transfers: [],
    nextPageToken: "",
    coveredFrom: 1_690_000_000n,
    coveredUntil: 1_699_000_000n,
  });
  const { chains } = getNetwork("mainnet");
  const [source, destination] = [chains.get("polygon"), chains.get("base")];
  const filter = { account: ACCOUNT.toLowerCase(), state: "PENDING", token: "ETH", source, destination };
  expect(lists).toEqual([{ filter, after: undefined, pageSize: 7 }]);
  expect(policies).toEqual(["private"]);
});

test("a page has 50 transfers unless a size is given", async () => {
  const { list, lists } = setup();
  await list({});
  expect(lists[0]?.pageSize).toBe(50);
});

test("continues after the page whose token it gets, with another page size too", async () => {
  const { list, lists } = setup({ next: NEXT });
  const { nextPageToken } = await list({ token: "ETH" });
  await list({
    token: "weth",
    account: ACCOUNT.toUpperCase().replace("0X", "0x"),
    pageToken: nextPageToken,
    pageSize: 3,
  });
  expect(lists[1]?.after).toEqual(NEXT);
});

test("a page goes on under another name of its chains", async () => {
  const { list, lists } = setup({ next: NEXT });
  const { nextPageToken: pageToken } = await list({ fromChain: "optimism", toChain: "Base" });
  await list({ fromChain: "10", toChain: "8453", pageToken });
  expect(lists[1]?.after).toEqual(NEXT);
});

test("rejects the token of another query", async () => {
  const { list, lists } = setup({ next: NEXT });
  const { nextPageToken: pageToken } = await list({ token: "ETH" });
  const other = `0x${"cd".repeat(20)}`;
  for (const query of [{}, { token: "DAI" }, { token: "ETH", account: other }, { token: "ETH", state: "PENDING" }])
    expect(() => list({ ...query, pageToken })).toThrow(
      expect.objectContaining({ reason: "INVALID_PARAMETER", field: "pageToken" }),
    );
  expect(lists).toHaveLength(1);
});

describe("rejects", () => {
  test.each([
    ["an unknown token", { token: "FRAX" }, "UNSUPPORTED_TOKEN", "token"],
    ["an unknown source", { fromChain: "zora" }, "UNSUPPORTED_CHAIN", "fromChain"],
    ["an unknown destination", { toChain: "zora" }, "UNSUPPORTED_CHAIN", "toChain"],
    ["a page token that is none", { pageToken: "1" }, "INVALID_PARAMETER", "pageToken"],
    ["a network that is not indexed", { network: "goerli" }, "INDEX_REQUIRED", undefined],
  ])("%s", (_, request, reason, field) => {
    const { list, lists } = setup();
    expect(() => list(request)).toThrow(expect.objectContaining({ reason, field }));
    expect(lists).toEqual([]);
  });

  test("every list without an index, but tells mistakes first", () => {
    const { list } = setup({ hasIndex: false });
    expect(() => list({})).toThrow(expect.objectContaining({ reason: "INDEX_REQUIRED" }));
    expect(() => list({ pageSize: 0 })).toThrow(expect.objectContaining({ field: "pageSize" }));
  });
});

describe("has amounts in US dollars", () => {
  const transfers = [createStatus(), createStatus({ sent: { token: "DAI" } })];
  const usdOf = ({ transfers: listed }: ListTransfersResponse) =>
    listed.map(({ amountUsd, amountFormatted }) => amountUsd / amountFormatted);

  test("by prices that are cached, at once; 0 for a token without one", () => {
    const response = setup({ transfers }).list({});
    expect(response).not.toBeInstanceOf(Promise);
    expect(usdOf(response as ListTransfersResponse)).toEqual([2, 0]);
  });

  test("by prices that come later, and 0 without any", async () => {
    expect(usdOf(await setup({ transfers, prices: "later" }).list({}))).toEqual([2, 0]);
    expect(usdOf(await setup({ transfers, prices: "never" }).list({}))).toEqual([0, 0]);
  });
});

test("counts a page as one request for every 50 transfers", async () => {
  const { list, counts } = setup();
  for (const pageSize of [1, 50, 51, 1_000]) await list({ pageSize });
  expect(counts).toEqual([2, 20]);
});

describe("with view FULL", () => {
  const details: TransferDetails = {
    ...{
      substate: "RECEIVED",
      payout: { amount: 5n, token: "ETH", isUnrequestedHToken: false },
      estimatedDeliveryAt: 17,
    },
    source: { blockNumber: 1, timestamp: 2, isFinal: true },
    destination: undefined,
  };
  const transfers = [createStatus(), createStatus()];

  test("adds the details of each transfer, to 100 transfers of a page", async () => {
    const { list, lists, counts } = setup({ transfers, outcomes: [{ details }, { details }] });
    const response = await list({ view: "FULL", pageSize: 1_000 });
    expect(response.transfers).toMatchObject(
      transfers.map(() => ({ details: { receivedAmount: "5", estimatedDeliveryAt: 17n } })),
    );
    expect(lists[0]?.pageSize).toBe(100);
    expect(counts).toEqual([100]);
    expect((await list({})).transfers[0]).not.toHaveProperty("details");
  });

  test("fails when a chain that has to tell them does not answer", () => {
    const error = new ServiceError("UPSTREAM_UNAVAILABLE", "no RPC endpoint of base responded");
    const { list } = setup({ transfers, outcomes: [{ details }, { error }] });
    expect(() => list({ view: "FULL" })).toThrow(error);
  });
});

test("reads nothing for a caller whose limit does not suffice", async () => {
  const counted = Promise.reject(new ServiceError("RATE_LIMITED", "too many"));
  const { list, lists } = setup({ counted });
  await expect(list({ pageSize: 1_000 })).rejects.toMatchObject({ reason: "RATE_LIMITED" });
  expect(lists).toEqual([]);
});
