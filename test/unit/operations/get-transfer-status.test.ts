import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  GetTransferStatusRequestSchema,
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State as State,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { Chains } from "../../../src/chain/chains.js";
import { createGetTransferStatus } from "../../../src/operations/get-transfer-status.js";
import type { CachePolicy, CallContext } from "../../../src/operations/operation.js";
import type { TokenPrices } from "../../../src/prices/token-prices.js";
import type { LookupContext, LookupResult, TransferQuery } from "../../../src/transfers/sources/transfer-source.js";
import type { StatusCache } from "../../../src/transfers/status-cache.js";
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
} from "../../support/stubs/transfer-fixtures.js";

const observedAt = 1_700_000_100_000;
const maxTimeoutMs = 10_000;

interface Setup {
  readonly found?: LookupResult | Promise<LookupResult>;
  /** USD now; undefined: none at hand. */
  readonly usd?: number | undefined;
  /** USD for who waits; undefined: never. */
  readonly usdLater?: number | Error | undefined;
  readonly timeoutMs?: number;
}

function setup({ usdLater, timeoutMs, ...parts }: Setup = {}) {
  // Undefined is a word here, and no default.
  const found = "found" in parts ? parts.found : createStatus();
  const usd = "usd" in parts ? parts.usd : 2;
  const state = { usd, now: observedAt + 1_500, steady: 5_000, signalReads: 0, closed: 0 };
  const asked: { query: TransferQuery; context: LookupContext }[] = [];
  const said = { cache: [] as CachePolicy[], metadata: [] as object[], notes: {} as Record<string, unknown> };
  const statusCache: StatusCache = {
    find(query, context) {
      asked.push({ query, context });
      return found;
    },
  };
  const chains: Pick<Chains, "forNetwork" | "withCustomEndpoints"> = {
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
  const prices: TokenPrices = {
    peekTable: () => (state.usd === undefined ? undefined : { getUsdPrice: price }),
    getTable: () => Promise.reject(new Error("one price is enough")),
    getUsdPrice: () =>
      new Promise((resolve, reject) => {
        if (usdLater instanceof Error) reject(usdLater);
        else if (usdLater !== undefined) resolve(usdLater);
      }),
  };
  const operation = createGetTransferStatus({
    chains,
    statusCache,
    prices,
    maxTimeoutMs,
    now: () => state.now,
    monotonicNow: () => state.steady,
  });
  const caller = new AbortController();
  const context: CallContext = {
    requestId: "r",
    caller: "127.0.0.1",
    get signal() {
      state.signalReads += 1;
      return caller.signal;
    },
    timeoutMs,
    addLogFields: (facts) => Object.assign(said.notes, facts),
    setCachePolicy: (policy) => said.cache.push(policy),
    setResponseMetadata: (entries) => said.metadata.push(entries),
  };
  const ask = (
    request: MessageInitShape<typeof GetTransferStatusRequestSchema> = { transferId: repeatedByteHash("1a") },
  ) => operation(create(GetTransferStatusRequestSchema, request), context);
  return { ask, asked, said, state, caller };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("which transfer is meant", () => {
  const [id, shouted] = [repeatedByteHash("ab"), `0x${"AB".repeat(32)}`];
  test.each<[object, TransferQuery]>([
    [{ transferId: id }, { transferId: id, transactionHash: undefined }],
    [{ transferId: shouted }, { transferId: id, transactionHash: undefined }],
    [{ transferHash: shouted }, { transferId: undefined, transactionHash: id }],
    [{ transactionHash: shouted }, { transferId: undefined, transactionHash: id }],
    [
      { transferHash: id, transactionHash: shouted },
      { transferId: undefined, transactionHash: id },
    ],
    [
      { transferId: repeatedByteHash("1a"), transferHash: id },
      { transferId: repeatedByteHash("1a"), transactionHash: id },
    ],
    [{ transferId: "0" }, { transferId: "0", transactionHash: undefined }],
    [
      { transferId: "18446744073709551615", transferHash: "" },
      { transferId: "18446744073709551615", transactionHash: undefined },
    ],
  ])("%o", async (request, query) => {
    const { ask, asked } = setup();
    await ask(request);
    expect(asked.map((each) => each.query)).toEqual([query]);
  });

  test.each<[object, string, string | undefined]>([
    [{}, "MISSING_PARAMETER", "transferId"],
    [{ transferId: "", transferHash: "" }, "MISSING_PARAMETER", "transferId"],
    [{ transferHash: id.slice(0, -1) }, "INVALID_PARAMETER", "transferHash"],
    [{ transactionHash: `${id}0` }, "INVALID_PARAMETER", "transactionHash"],
    [{ transferHash: id, transactionHash: repeatedByteHash("ac") }, "INVALID_PARAMETER", "transactionHash"],
    [{ transferHash: id.slice(2) }, "INVALID_PARAMETER", "transferHash"],
    [{ transferId: "0x1" }, "INVALID_PARAMETER", "transferId"],
    [{ transferId: "01" }, "INVALID_PARAMETER", "transferId"],
    [{ transferId: "-1" }, "INVALID_PARAMETER", "transferId"],
    [{ transferId: " 1" }, "INVALID_PARAMETER", "transferId"],
    [{ transferId: "18446744073709551616" }, "INVALID_PARAMETER", "transferId"],
    [{ transferId: "1", network: "kovan" }, "UNSUPPORTED_NETWORK", "network"],
    [{ transferId: "1", rpcUrl: { nowhere: "https://a" } }, "UNSUPPORTED_CHAIN", "rpcUrl[nowhere]"],
  ])("%o is refused: %s", (request, reason, field) => {
    const { ask, asked, said } = setup();
    expect(() => ask(request)).toThrow(expect.objectContaining({ reason, field }));
    expect([asked, said.cache, said.metadata]).toEqual([[], [], []]);
  });

  test("is looked for on the network that is asked for", async () => {
    const { ask, asked, said } = setup();
    await ask({ transferId: "1", network: "goerli" });
    expect(asked[0]?.context.network.slug).toBe("goerli");
    expect(said.notes.network).toBe("goerli");
  });
});

describe("what is answered", () => {
  const answer = (parts: StatusOverrides, more: Omit<Setup, "found"> = {}) =>
    setup({ found: createStatus(parts), ...more }).ask() as GetTransferStatusResponse;

  test("is all that is known", () => {
    expect(answer({ otherTransferIds: [repeatedByteHash("05"), repeatedByteHash("06")] })).toMatchObject({
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

  const nothing = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
  test.each<[string, StatusOverrides, object]>([
    [
      "pending",
      { delivery: undefined },
      { state: State.PENDING, bonded: false, bondTransactionHash: "", bonderAddress: "" },
    ],
    [
      "not to be bonded",
      { delivery: undefined, sent: { destination: getChain("ethereum") } },
      { state: State.UNBONDABLE, bonded: false },
    ],
    [
      "received, not known by what",
      { delivery: nothing },
      { state: State.BONDED, bonded: true, bondTransactionHash: "", bonderAddress: "" },
    ],
    ["without others", {}, { otherTransferIds: [] }],
  ])("%s", (_, parts, expected) => {
    expect(answer(parts)).toMatchObject(expected);
  });

  test.each([
    [2n ** 63n - 1n, 2n ** 63n - 1n],
    [2n ** 63n, 2n ** 63n - 1n],
    [2n ** 256n - 1n, 2n ** 63n - 1n],
    [0n, 0n],
  ])("a deadline of %s is told as %s", (deadline, told) => {
    const { event } = createSentTransfer();
    expect(answer({ sent: { event: { ...event, deadline } } }).deadline).toBe(told);
  });

  test("is who says it and when, in log and metadata", async () => {
    const { ask, said } = setup({ found: Promise.resolve(createStatus({ source: "explorer" })) });
    await ask();
    expect(said.metadata).toEqual([{ source: "explorer", "observed-at": "2023-11-14T22:15:00.000Z" }]);
    expect(said.notes).toEqual({
      network: "mainnet",
      token: "ETH",
      route: "optimism>arbitrum",
      state: "BONDED",
      source: "explorer",
    });
  });

  test("is at once what is at hand, without a look at the signal", () => {
    const { ask, state } = setup();
    expect(ask()).not.toBeInstanceOf(Promise);
    expect(state.signalReads).toBe(0);
  });

  test("is not found where there is none, and then nothing is said beside it", async () => {
    const none = expect.objectContaining({ reason: "TRANSFER_NOT_FOUND", message: expect.stringContaining("mainnet") });
    const [atHand, later] = [setup({ found: undefined }), setup({ found: Promise.resolve(undefined) })];
    expect(atHand.ask).toThrow(none);
    await expect(later.ask()).rejects.toEqual(none);
    for (const { said } of [atHand, later]) expect([said.cache, said.metadata]).toEqual([[], []]);
  });

  test("is a failure where it cannot be known", async () => {
    const { ask, said } = setup({ found: Promise.reject(unavailableError("base")) });
    await expect(ask()).rejects.toThrow("base is down");
    expect([said.cache, said.metadata]).toEqual([[], []]);
  });
});

describe("how long it may be kept", () => {
  test.each<[string, StatusOverrides, CachePolicy]>([
    ["settled", {}, { ageSeconds: 1.5, maxAgeSeconds: 86_400 }],
    ["pending", { delivery: undefined }, { ageSeconds: 1.5, maxAgeSeconds: 1 }],
    ["not final", { isFinal: false }, { ageSeconds: 1.5, maxAgeSeconds: 1 }],
    [
      "pending towards L1",
      { delivery: undefined, sent: { destination: getChain("ethereum") } },
      { ageSeconds: 1.5, maxAgeSeconds: 12 },
    ],
    ["settled, with the price of the time", { priceUsd: 3 }, { ageSeconds: 1.5, maxAgeSeconds: 86_400 }],
    ["settled, without a price", { sent: { token: "HOP" } }, { ageSeconds: 1.5, maxAgeSeconds: 1 }],
    [
      "settled, without a price, towards a slow chain",
      { sent: { token: "HOP", destination: getChain("ethereum") } },
      { ageSeconds: 1.5, maxAgeSeconds: 12 },
    ],
  ])("%s", async (_, parts, policy) => {
    const { ask, said } = setup({ found: createStatus(parts) });
    await ask();
    expect(said.cache).toEqual([policy]);
  });

  test.each([
    [4, 86_400],
    [unavailableError("prices"), 1],
  ])("settled, when the price was waited for: %s", async (usdLater, maxAgeSeconds) => {
    const { ask, said } = setup({ usd: undefined, usdLater });
    await ask();
    expect(said.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds }]);
  });

  test("not at all where the caller named an endpoint, which is closed in the end", async () => {
    for (const rpcUrl of [{ optimism: "https://a" }, { xdai: "https://a" }]) {
      const { ask, said, asked, state } = setup();
      await ask({ transferId: "1", rpcUrl });
      const [slug] = Object.keys(rpcUrl);
      expect(asked[0]?.context.chains.hasCustomEndpoint(slug === "xdai" ? "gnosis" : "optimism")).toBe(true);
      expect(said.cache).toEqual(["private"]);
      expect(state.closed).toBe(1);
    }
    const { ask, said } = setup();
    await ask({ transferId: "1", rpcUrl: { optimism: "" } });
    expect(said.cache).toEqual([{ ageSeconds: 1.5, maxAgeSeconds: 86_400 }]);
  });
});

describe("the price", () => {
  test("is that of the time where it is known", () => {
    expect(setup({ found: createStatus({ priceUsd: 3 }) }).ask()).toMatchObject({ amountUsd: 7.5, bonderFeeUsd: 0.75 });
  });

  test.each<[string, Setup, number]>([
    ["is today's where that is at hand", { usd: 2 }, 5],
    ["is 0 where there is none", { usd: 2, found: createStatus({ sent: { token: "HOP" } }) }, 0],
    ["is waited for", { usd: undefined, usdLater: 4 }, 10],
    ["is 0 where none comes", { usd: undefined, usdLater: unavailableError("prices") }, 0],
  ])("%s", async (_, parts, amountUsd) => {
    expect(await setup(parts).ask()).toMatchObject({ amountUsd });
  });

  test.each([
    [1_000, 0, maxTimeoutMs],
    // Of what is left half is for the answer.
    [400, 0, 800],
    [400, 1_200, 2_000],
    [0, 1_200, 1_200],
  ])("is waited for %i ms at most, when finding took %i ms of %i ms", async (patience, takes, timeoutMs) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const found = createDeferred<LookupResult>();
    const { ask, state } = setup({ usd: undefined, found: found.promise, timeoutMs });
    let isOver = false;
    const answer = Promise.resolve(ask()).finally(() => {
      isOver = true;
    });
    state.steady += takes;
    found.resolve(createStatus());
    await vi.advanceTimersByTimeAsync(Math.max(0, patience - 1));
    expect(isOver).toBe(patience === 0);
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toMatchObject({ amountUsd: 0, amountFormatted: 2.5 });
  });

  test("makes another message of one status, and the same as long as it stands", () => {
    const { ask, state } = setup();
    const first = ask() as GetTransferStatusResponse;
    expect(Object.isFrozen(first) && Object.isFrozen(first.otherTransferIds)).toBe(true);
    expect(ask()).toBe(first);
    state.usd = 3;
    expect(ask()).toMatchObject({ amountUsd: 7.5 });
    expect(ask()).not.toBe(first);
    state.usd = 2;
    expect(ask()).toEqual(first);
  });
});

describe("the time for it", () => {
  test.each([
    [undefined, maxTimeoutMs],
    [400, 400],
    [60_000, maxTimeoutMs],
  ])("is the caller's %s ms, and %i at most", async (timeoutMs, leftMs) => {
    const { ask, asked, state, caller } = setup(timeoutMs === undefined ? {} : { timeoutMs });
    await ask();
    const [first] = asked;
    expect(first?.context.remainingMs()).toBe(leftMs);
    state.steady += 300;
    expect(first?.context.remainingMs()).toBe(leftMs - 300);
    expect(first?.context.signal).toBe(caller.signal);
  });
});
