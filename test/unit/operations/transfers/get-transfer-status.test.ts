import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import {
  GetTransferStatusRequestSchema,
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State as State,
  TransferDetails_Substate,
  TransferDetailsSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients } from "../../../../src/chain/chains.js";
import {
  createGetTransferStatus,
  type GetTransferStatusDeps,
} from "../../../../src/operations/transfers/get-transfer-status.js";
import type { TokenPrices } from "../../../../src/prices/token-prices.js";
import { mapMaybeAsync } from "../../../../src/resilience/maybe-async.js";
import type { DetailsFinder } from "../../../../src/transfers/details/details-finder.js";
import type { DetailsOutcome, TransferDetails } from "../../../../src/transfers/details/transfer-details.js";
import {
  copyContext,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
} from "../../../../src/transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import type { StatusCache } from "../../../../src/transfers/status-cache.js";
import {
  createChainAccess,
  createDeferred,
  createSentTransfer,
  createStatus,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
  type StatusOverrides,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";
import { createRecordingContext } from "../call-context.js";

const OBSERVED_AT_MS = 1_700_000_100_000;

const settledDetails: TransferDetails = {
  substate: "RECEIVED",
  payout: { amount: 12n, token: "ETH", isUnrequestedHToken: false },
  source: { blockNumber: 1_000, timestamp: 1_700_000_000, isFinal: true },
  destination: { blockNumber: 2_000, timestamp: 1_700_000_060, isFinal: true },
  estimatedDeliveryAt: 1_700_000_090,
};

interface Setup {
  readonly status?: LookupResult | Promise<LookupResult>;
  /** Cached price in USD; undefined: none. */
  readonly usd?: number | undefined;
  /** Price that is loaded, or its error; undefined: hangs. */
  readonly usdLater?: number | Error | undefined;
  readonly details?: DetailsOutcome | Promise<DetailsOutcome>;
  readonly blockAges?: GetTransferStatusDeps["blockAges"];
}

function setup({ usdLater, blockAges, details = { details: settledDetails }, ...parts }: Setup = {}) {
  // An explicit undefined is not the default.
  const status = "status" in parts ? parts.status : createStatus();
  const usd = "usd" in parts ? parts.usd : 2;
  const state = { usd, now: OBSERVED_AT_MS + 1_500, remainingMs: 10_000, signalReads: 0, closed: 0 };
  const lookups: { query: TransferQuery; context: LookupContext }[] = [];
  const statusCache: Pick<StatusCache, "find"> = {
    find(query, context) {
      lookups.push({ query, context });
      return status;
    },
  };
  const detailed: { statuses: readonly TransferStatus[]; context: LookupContext; closed: number }[] = [];
  const detailsFinder: Pick<DetailsFinder, "find"> = {
    find(statuses, context) {
      detailed.push({ statuses, context, closed: state.closed });
      return mapMaybeAsync(details, (outcome) => [outcome]);
    },
  };
  const chains: Pick<ChainClients, "forNetwork" | "withCustomEndpoints"> = {
    forNetwork: () => createChainAccess([]),
    async withCustomEndpoints(_, custom, work) {
      try {
        return await work(createChainAccess([], [...custom.keys()]));
      } finally {
        state.closed += 1;
      }
    },
  };
  const price = (token: string): number => {
    if (token !== "ETH" && token !== "DAI") throw unavailableError("no price");
    return state.usd ?? 0;
  };
  const getOrigin = () => expect.unreachable("a status names no source of its prices");
  const prices: TokenPrices = {
    peekTable: () => (state.usd === undefined ? undefined : { getUsdPrice: price, getOrigin }),
    getTable: () => Promise.reject(new Error("one price is enough")),
    getUsdPrice: () =>
      new Promise((resolve, reject) => {
        if (usdLater instanceof Error) reject(usdLater);
        else if (usdLater !== undefined) resolve(usdLater);
      }),
  };
  const operation = createGetTransferStatus({
    chains,
    blockAges,
    statusCache,
    details: detailsFinder,
    attestations: undefined,
    prices,
    now: () => state.now,
  });
  const caller = new AbortController();
  const { context, recorded } = createRecordingContext({ remainingMs: () => state.remainingMs });
  Object.defineProperty(context, "signal", {
    get() {
      state.signalReads += 1;
      return caller.signal;
    },
  });
  const call = (
    request: MessageInitShape<typeof GetTransferStatusRequestSchema> = { transferId: repeatedByteHash("1a") },
  ) => operation(create(GetTransferStatusRequestSchema, request), context);
  return { call, lookups, detailed, recorded, state, caller };
}

describe("the transfer query", () => {
  const [id, upperCaseId] = [repeatedByteHash("ab"), `0x${"AB".repeat(32)}`];
  const [otherId, largestNonce] = [repeatedByteHash("1a"), "18446744073709551615"];
  test.each<[object, string | undefined, string | undefined]>([
    [{ transferId: id }, id, undefined],
    [{ transferId: upperCaseId }, id, undefined],
    [{ transferHash: upperCaseId }, undefined, id],
    [{ transactionHash: upperCaseId }, undefined, id],
    [{ transferHash: id, transactionHash: upperCaseId }, undefined, id],
    [{ transferId: otherId, transferHash: id }, otherId, id],
    [{ transferId: "0" }, "0", undefined],
    [{ transferId: largestNonce, transferHash: "" }, largestNonce, undefined],
  ])("of %o has the ID %s and the hash %s", async (request, transferId, transactionHash) => {
    const { call, lookups } = setup();
    await call(request);
    expect(lookups.map(({ query }) => query)).toEqual([{ transferId, transactionHash }]);
  });

  test.each<[object, string, string | undefined]>([
    [{}, "MISSING_PARAMETER", "transferId"],
    [{ transferId: "", transferHash: "" }, "MISSING_PARAMETER", "transferId"],
    [{ transferHash: id, transactionHash: repeatedByteHash("ac") }, "INVALID_PARAMETER", "transactionHash"],
    [{ transferId: "1", network: "kovan" }, "UNSUPPORTED_NETWORK", "network"],
    [{ transferId: "1", rpcUrl: { nowhere: "https://a" } }, "UNSUPPORTED_CHAIN", "rpcUrl[nowhere]"],
  ])("of %o is rejected with %s", (request, reason, field) => {
    const { call, lookups, recorded } = setup();
    expect(() => call(request)).toThrow(expect.objectContaining({ reason, field }));
    expect([lookups, recorded.cache, recorded.metadata]).toEqual([[], [], []]);
  });

  test("is resolved on the requested network", async () => {
    const { call, lookups, recorded } = setup();
    await call({ transferId: "1", network: "goerli" });
    expect(lookups[0]?.context.network.slug).toBe("goerli");
    expect(recorded.logFields.network).toBe("goerli");
  });
});

describe("the response", () => {
  const getResponse = (parts: StatusOverrides, more: Omit<Setup, "status"> = {}) =>
    setup({ status: createStatus(parts), ...more }).call() as GetTransferStatusResponse;

  test("contains all fields of the status", () => {
    expect(getResponse({ otherTransferIds: [repeatedByteHash("05"), repeatedByteHash("06")] })).toMatchObject({
      transferId: repeatedByteHash("1a"),
      transactionHash: repeatedByteHash("2b"),
      sourceChainId: 10,
      sourceChainSlug: "optimism",
      destinationChainId: 42161,
      destinationChainSlug: "arbitrum",
      accountAddress: repeatedByteAddress("c1"),
      amount: "2500000000000000000",
      amountFormatted: 2.5,
      amountUsd: 5,
      amountOutMin: "2490000000000000000",
      deadline: 1_700_600_000n,
      recipientAddress: repeatedByteAddress("d2"),
      bonderFee: "250000000000000000",
      bonderFeeFormatted: 0.25,
      bonderFeeUsd: 0.5,
      bonded: true,
      bondTransactionHash: repeatedByteHash("3c"),
      bonderAddress: repeatedByteAddress("e3"),
      token: "ETH",
      timestamp: 1_700_000_000n,
      state: State.BONDED,
      otherTransferIds: [repeatedByteHash("05"), repeatedByteHash("06")],
    });
  });

  const unknownDelivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
  test.each<[string, StatusOverrides, object]>([
    [
      "pending",
      { delivery: undefined },
      { state: State.PENDING, bonded: false, bondTransactionHash: "", bonderAddress: "" },
    ],
    [
      "unbondable",
      { delivery: undefined, sent: { destination: getChain("ethereum") } },
      { state: State.UNBONDABLE, bonded: false },
    ],
    [
      "received by an unknown transaction",
      { delivery: unknownDelivery },
      { state: State.BONDED, bonded: true, bondTransactionHash: "", bonderAddress: "" },
    ],
    ["without other transfers", {}, { otherTransferIds: [] }],
  ])("of a transfer that is %s", (_, parts, expected) => {
    expect(getResponse(parts)).toMatchObject(expected);
  });

  test.each([
    [2n ** 63n - 1n, 2n ** 63n - 1n],
    [2n ** 63n, 2n ** 63n - 1n],
    [2n ** 256n - 1n, 2n ** 63n - 1n],
    [0n, 0n],
  ])("reports a deadline of %s as %s", (deadline, reported) => {
    const { event } = createSentTransfer();
    expect(getResponse({ sent: { event: { ...event, deadline } } }).deadline).toBe(reported);
  });

  test("has its source and time in log fields and metadata", async () => {
    const { call, recorded } = setup({ status: Promise.resolve(createStatus({ source: "explorer" })) });
    await call();
    expect(recorded.metadata).toEqual([{ source: "explorer", "observed-at": "2023-11-14T22:15:00.000Z" }]);
    expect(recorded.logFields).toEqual({
      network: "mainnet",
      token: "ETH",
      route: "optimism>arbitrum",
      state: "BONDED",
      source: "explorer",
    });
  });

  describe("while a chain is stalled", () => {
    const block = { timestamp: OBSERVED_AT_MS / 1000 - 300, ageMs: 300_000 };
    const ofBlock = new Date(block.timestamp * 1000).toISOString();
    const ofRead = new Date(OBSERVED_AT_MS).toISOString();
    const getObservedAt = async (chain: string, status: StatusOverrides): Promise<string | undefined> => {
      const blockAges = {
        stalledCount: () => 1,
        findStalled: (_: string, slug: string) => (slug === chain ? block : undefined),
      };
      const { call, recorded } = setup({ blockAges, status: createStatus(status) });
      await call();
      return (recorded.metadata[0] as Record<string, string>)["observed-at"];
    };

    test("was observed in the newest block of that chain, if it can change", async () => {
      expect(await getObservedAt("arbitrum", { delivery: undefined })).toBe(ofBlock);
      expect(await getObservedAt("optimism", { isFinal: false })).toBe(ofBlock);
    });

    test("was observed when it was read if the chain is another one, or nothing can change", async () => {
      expect(await getObservedAt("polygon", { delivery: undefined })).toBe(ofRead);
      expect(await getObservedAt("arbitrum", { isFinal: true })).toBe(ofRead);
      expect(await getObservedAt("arbitrum", { source: "explorer", delivery: undefined })).toBe(ofRead);
    });
  });

  test("is synchronous for a cached status, without reading the signal", () => {
    const { call, state } = setup();
    expect(call()).not.toBeInstanceOf(Promise);
    expect(state.signalReads).toBe(0);
  });

  test("is TRANSFER_NOT_FOUND without a transfer, with neither cache policy nor metadata", async () => {
    const none = expect.objectContaining({ reason: "TRANSFER_NOT_FOUND", message: expect.stringContaining("mainnet") });
    const [cached, loaded] = [setup({ status: undefined }), setup({ status: Promise.resolve(undefined) })];
    expect(cached.call).toThrow(none);
    await expect(loaded.call()).rejects.toEqual(none);
    for (const { recorded } of [cached, loaded]) expect([recorded.cache, recorded.metadata]).toEqual([[], []]);
  });

  test("is an error when the lookup fails", async () => {
    const { call, recorded } = setup({ status: Promise.reject(unavailableError("base")) });
    await expect(call()).rejects.toThrow("base is down");
    expect([recorded.cache, recorded.metadata]).toEqual([[], []]);
  });
});

describe("the view", () => {
  const query = { transferId: repeatedByteHash("1a") };

  test.each(["", "BASIC"])("%o reads no details and adds none", (view) => {
    const { call, detailed } = setup();
    const basic = setup().call(query);
    expect(call({ ...query, view })).toEqual(basic);
    expect(basic).not.toHaveProperty("details");
    expect(detailed).toEqual([]);
  });

  test("FULL adds the details at the end, synchronously when they are cached", () => {
    const { call, state } = setup();
    const response = call({ ...query, view: "FULL" }) as GetTransferStatusResponse;
    expect(Object.keys(response).at(-1)).toBe("details");
    expect(Object.isExtensible(response)).toBe(false);
    expect(state.signalReads).toBe(0);
    const { details, ...rest } = response;
    expect(rest).toEqual(setup().call(query));
    expect(details).toEqual(
      create(TransferDetailsSchema, {
        substate: TransferDetails_Substate.RECEIVED,
        receivedAmount: "12",
        receivedToken: "ETH",
        source: { blockNumber: 1_000n, timestamp: 1_700_000_000n, isFinal: true },
        destination: { blockNumber: 2_000n, timestamp: 1_700_000_060n, isFinal: true },
        estimatedDeliveryAt: 1_700_000_090n,
      }),
    );
  });

  test("FULL leaves out what is not known", () => {
    const pending = { ...settledDetails, substate: "WITHDRAWABLE", payout: undefined, destination: undefined } as const;
    const response = setup({ details: { details: pending } }).call({ ...query, view: "FULL" });
    expect(response).toMatchObject({ details: { receivedAmount: "", receivedToken: "" } });
    expect((response as GetTransferStatusResponse).details).not.toHaveProperty("destination");
  });

  test("FULL fails when the details cannot be read, with neither cache policy nor metadata", async () => {
    const details = Promise.resolve({ error: unavailableError("base") });
    const { call, recorded } = setup({ details });
    await expect(call({ ...query, view: "FULL" })).rejects.toThrow("base is down");
    expect([recorded.cache, recorded.metadata]).toEqual([[], []]);
  });

  test("FULL of a transfer that does not exist is TRANSFER_NOT_FOUND", () => {
    const { call, detailed } = setup({ status: undefined });
    expect(() => call({ ...query, view: "FULL" })).toThrow(expect.objectContaining({ reason: "TRANSFER_NOT_FOUND" }));
    expect(detailed).toEqual([]);
  });

  test("FULL reads details over custom endpoints before these are closed", async () => {
    const { call, detailed } = setup();
    await call({ ...query, view: "FULL", rpcUrl: { optimism: "https://a" } });
    expect(detailed).toMatchObject([{ closed: 0 }]);
    expect(detailed[0]?.context.chains.hasCustomEndpoint("optimism")).toBe(true);
  });

  test.each([
    [settledDetails, 86_400],
    [{ ...settledDetails, source: { ...settledDetails.source, isFinal: false } }, 1],
    [{ ...settledDetails, destination: undefined }, 1],
  ])("FULL may be cached for long only if both blocks are final (%#)", async (details, maxAgeSeconds) => {
    const { call, recorded } = setup({ details: { details } });
    await call({ ...query, view: "FULL" });
    expect(recorded.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds }]);
  });
});

describe("the cache policy", () => {
  test.each<[string, StatusOverrides, number]>([
    ["settled", {}, 86_400],
    ["pending", { delivery: undefined }, 1],
    ["not final", { isFinal: false }, 1],
    ["pending to L1", { delivery: undefined, sent: { destination: getChain("ethereum") } }, 12],
    ["settled, with a historical price", { priceUsd: 3 }, 86_400],
    ["settled, without a price", { sent: { token: "HOP" } }, 1],
    ["settled, without a price, to L1", { sent: { token: "HOP", destination: getChain("ethereum") } }, 12],
  ])("of a status that is %s", async (_, parts, maxAgeSeconds) => {
    const { call, recorded } = setup({ status: createStatus(parts) });
    await call();
    expect(recorded.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds }]);
  });

  test.each([
    [4, 86_400],
    [unavailableError("prices"), 1],
  ])("of a settled status depends on the loaded price: %s", async (usdLater, maxAgeSeconds) => {
    const { call, recorded } = setup({ usd: undefined, usdLater });
    await call();
    expect(recorded.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds }]);
  });

  test("is private with a custom endpoint, which is closed at the end", async () => {
    for (const rpcUrl of [{ optimism: "https://a" }, { xdai: "https://a" }]) {
      const { call, recorded, lookups, state } = setup();
      await call({ transferId: "1", rpcUrl });
      const [slug] = Object.keys(rpcUrl);
      expect(lookups[0]?.context.chains.hasCustomEndpoint(slug === "xdai" ? "gnosis" : "optimism")).toBe(true);
      expect(recorded.cache).toEqual(["private"]);
      expect(state.closed).toBe(1);
    }
    const { call, recorded } = setup();
    await call({ transferId: "1", rpcUrl: { optimism: "" } });
    expect(recorded.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds: 86_400 }]);
  });
});

describe("the price", () => {
  test("is the historical one if it is known", () => {
    expect(setup({ status: createStatus({ priceUsd: 3 }) }).call()).toMatchObject({
      amountUsd: 7.5,
      bonderFeeUsd: 0.75,
    });
  });

  test.each<[string, Setup, number]>([
    ["is the current one if it is cached", { usd: 2 }, 5],
    ["is 0 if there is none", { usd: 2, status: createStatus({ sent: { token: "HOP" } }) }, 0],
    ["is loaded if it is not cached", { usd: undefined, usdLater: 4 }, 10],
    ["is 0 if it cannot be loaded", { usd: undefined, usdLater: unavailableError("prices") }, 0],
  ])("%s", async (_, parts, amountUsd) => {
    expect(await setup(parts).call()).toMatchObject({ amountUsd });
  });

  test.each([
    [1_000, 10_000],
    // Half of the remaining time is reserved for the response.
    [400, 800],
    [0, 0],
  ])("is waited for at most %i ms when %i ms are left after the lookup", async (maxWaitMs, remainingMs) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const status = createDeferred<LookupResult>();
    const { call, state } = setup({ usd: undefined, status: status.promise });
    let isSettled = false;
    const response = Promise.resolve(call()).finally(() => {
      isSettled = true;
    });
    state.remainingMs = remainingMs;
    status.resolve(createStatus());
    await vi.advanceTimersByTimeAsync(Math.max(0, maxWaitMs - 1));
    expect(isSettled).toBe(maxWaitMs === 0);
    await vi.advanceTimersByTimeAsync(1);
    expect(await response).toMatchObject({ amountUsd: 0, amountFormatted: 2.5 });
  });

  test("changes the message of a cached status; the message is memoized while the price is the same", () => {
    const { call, state } = setup({ status: Object.freeze(createStatus()) });
    const first = call() as GetTransferStatusResponse;
    expect(Object.isFrozen(first) && Object.isFrozen(first.otherTransferIds)).toBe(true);
    expect(call()).toBe(first);
    state.usd = 3;
    expect(call()).toMatchObject({ amountUsd: 7.5 });
    expect(call()).not.toBe(first);
    state.usd = 2;
    expect(call()).toEqual(first);
  });

  test("is in an equal message of a status that is not cached, which transports validate but do not memoize", () => {
    const { call } = setup({ status: createStatus() });
    const first = call() as GetTransferStatusResponse;
    expect([Object.isFrozen(first), Object.isExtensible(first)]).toEqual([false, false]);
    expect(call()).not.toBe(first);
    expect(call()).toEqual(first);
    expect(setup({ status: Object.freeze(createStatus()) }).call()).toEqual(first);
  });
});

test("the lookup has the deadline and the signal of its call, and so has a copy of its context", async () => {
  const { call, lookups, state, caller } = setup();
  await call();
  const [first] = lookups;
  if (first === undefined) throw new Error("no lookup");
  state.remainingMs = 300;
  for (const context of [first.context, copyContext(first.context)]) {
    expect(context.remainingMs()).toBe(300);
    expect(context.signal).toBe(caller.signal);
  }
});
