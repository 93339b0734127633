import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { BatchGetQuotesRequestSchema, type BatchGetQuotesResponse } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { findAvailableRoutes } from "../../../../src/hop/routes.js";
import { toServiceError } from "../../../../src/http/request/error-mapping.js";
import { createBatchGetQuotes } from "../../../../src/operations/quotes/batch-get-quotes.js";
import type { PreparedQuote, TimestampedQuote } from "../../../../src/quotes/quote-engine.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";
import { FairQuota } from "../../../../src/resilience/fair-quota.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { createDeferred, flushEventLoop } from "../../../support/stubs/transfer-fixtures.js";
import { createRecordingContext } from "../call-context.js";

type BatchInit = Exclude<MessageInitShape<typeof BatchGetQuotesRequestSchema>, { $typeName: unknown }>;

const FRESHNESS = { ageMs: 1_000, maxAgeMs: 4_000, refreshMs: 2_000 };
const SHARED = { token: "USDT", fromChain: "polygon", slippage: 0.5 };
const settings = getBuiltInFeeSettings("mainnet");

function toQuote({ amountIn, destination }: QuoteRequest): TimestampedQuote {
  const quote = {
    ...{ amountIn, amountOutMin: BigInt(destination.chainId), destinationAmountOutMin: 1n, bonderFee: 2n },
    ...{ estimatedReceived: amountIn, deadline: 5, destinationDeadline: 6 },
  };
  return { quote, freshness: FRESHNESS };
}

interface Options {
  /** Returns the quote of a request; a promise is a quote whose inputs are not at hand. */
  readonly prepare?: (request: QuoteRequest) => PreparedQuote | Promise<PreparedQuote>;
  readonly hasSettings?: boolean;
  readonly remainingMs?: number;
  readonly capacity?: number;
  readonly count?: (requests: number) => Promise<void> | undefined;
}

function setup({ prepare = (request) => () => toQuote(request), ...options }: Options = {}) {
  const { hasSettings = true, remainingMs = 10_000, capacity = 1_000, count = () => undefined } = options;
  const calls = {
    ...{ prepared: [] as QuoteRequest[], internal: [] as unknown[] },
    ...{ counts: [] as ReadonlyMap<string, number>[], calls: [] as string[] },
  };
  const caller = new AbortController();
  const { context, recorded: response } = createRecordingContext({
    ...{ caller: "192.0.2.1", signal: caller.signal, remainingMs: () => remainingMs },
    countAsRequests(requests) {
      calls.calls.push(`count ${requests}`);
      return count(requests);
    },
    describeFailure(error) {
      const { reason, message, field = "" } = toServiceError(error);
      if (reason === "INTERNAL") calls.internal.push(error);
      return { code: "code", message, reason, field };
    },
  });
  const quota = new FairQuota(() => capacity);
  const document = {
    get: async () => ({ value: settings, readAt: 0 }),
    peek: () => (hasSettings ? { value: settings, readAt: 0 } : undefined),
  };
  const operation = createBatchGetQuotes({
    settings: new FeeSettingsSource({ mainnet: document, goerli: document }),
    engine: {
      prepareQuotes(requests) {
        calls.calls.push(`prepare ${requests.length}`);
        calls.prepared.push(...requests);
        return requests.map(prepare);
      },
    },
    quoteQuota: quota,
    eventLoop: new FairScheduler({ turnMs: 1_000 }),
    onResults: (counts) => calls.counts.push(counts),
  });
  const call = (init: BatchInit) => operation(create(BatchGetQuotesRequestSchema, init), context);
  return { call, recorded: { ...calls, ...response }, quota, caller };
}

/** Calls a batch that is answered at once. */
function callNow(init: BatchInit, options?: Options): BatchGetQuotesResponse {
  const response = setup(options).call(init);
  if (response instanceof Promise) throw new Error("had to wait");
  return response;
}

const summarize = ({ results }: BatchGetQuotesResponse) =>
  results.map(({ toChain, amount, result }) => [
    toChain,
    amount,
    result.case === "error" ? result.value.reason : result.value?.amountIn,
  ]);

test("quotes every pair, destinations outside and amounts inside", () => {
  const response = callNow({ ...SHARED, toChain: ["base", "optimism"], amount: ["3", "1"] });
  expect(summarize(response)).toEqual([
    ["base", "3", "UNSUPPORTED_ROUTE"],
    ["base", "1", "UNSUPPORTED_ROUTE"],
    ["optimism", "3", "3"],
    ["optimism", "1", "1"],
  ]);
  expect(response.results[2]).toMatchObject({ fromChain: "polygon", token: "USDT" });
});

test("names chains by their slugs, whatever the request calls them, also where it fails", () => {
  const named = callNow({ ...SHARED, fromChain: "137", toChain: ["Optimism", "10", "zora"], amount: ["1"] });
  expect(named.results.map((result) => [result.fromChain, result.toChain])).toEqual([
    ["polygon", "optimism"],
    ["polygon", "optimism"],
    ["polygon", "zora"],
  ]);
  expect(callNow({ ...SHARED, toChain: ["BASE"], amount: ["x"] }).results).toMatchObject([{ toChain: "base" }]);
});

test("goes to every chain with a route, in the order of the available routes, if none is named", () => {
  const routes = findAvailableRoutes(getNetwork("mainnet"), settings);
  const expected = routes.filter(({ token, source }) => token === "USDT" && source.slug === "polygon");
  for (const toChain of [[], [""]]) {
    const { results } = callNow({ ...SHARED, toChain, amount: ["5"] });
    expect(results.map((result) => result.toChain)).toEqual(expected.map(({ destination }) => destination.slug));
  }
});

test("has no results if there is no route", () => {
  expect(callNow({ ...SHARED, token: "USDC.e", fromChain: "ethereum", amount: ["5"] }).results).toEqual([]);
});

test.each<[string, BatchInit, string, string]>([
  ["an empty amount alone", { ...SHARED, amount: [""] }, "MISSING_PARAMETER", "amount"],
  ["an unknown token", { ...SHARED, token: "X", amount: ["1"] }, "UNSUPPORTED_TOKEN", "token"],
  ["an unknown source", { ...SHARED, fromChain: "x", amount: ["1"] }, "UNSUPPORTED_CHAIN", "fromChain"],
  ["an unknown network", { ...SHARED, network: "x", amount: ["1"] }, "UNSUPPORTED_NETWORK", "network"],
  ["101 amounts", { ...SHARED, toChain: ["base"], amount: Array(101).fill("1") }, "INVALID_PARAMETER", "amount"],
  [
    "26 amounts to 4 chains",
    { ...SHARED, toChain: Array(4).fill("base"), amount: Array(26).fill("1") },
    ...(["INVALID_PARAMETER", "amount"] as const),
  ],
  ["101 requests", { requests: Array(101).fill({}) }, "INVALID_PARAMETER", "requests"],
  ["both forms", { requests: [{}], token: "USDT" }, "INVALID_PARAMETER", "requests"],
  ["requests with a slippage for all", { requests: [{}], slippage: 0 }, "INVALID_PARAMETER", "requests"],
  ["requests with an endpoint", { requests: [{ rpcUrl: { base: "x" } }] }, "INVALID_PARAMETER", "requests"],
])("refuses the whole batch for %s", (_, init, reason, field) => {
  const { call, recorded } = setup();
  expect(() => call(init)).toThrow(expect.objectContaining({ reason, field }));
  expect(recorded.calls).toEqual([]);
});

test("fails a quote with an invalid amount or destination alone", () => {
  const response = callNow({ ...SHARED, toChain: ["x", "optimism"], amount: ["0", "", "7"] });
  expect(
    response.results.map(({ result }) => result.case === "error" && [result.value.reason, result.value.field]),
  ).toEqual([
    ["INVALID_PARAMETER", "amount"],
    ["MISSING_PARAMETER", "amount"],
    ["UNSUPPORTED_CHAIN", "toChain"],
    ["INVALID_PARAMETER", "amount"],
    ["MISSING_PARAMETER", "amount"],
    false,
  ]);
});

test("warns once of all amounts above a burn limit, and names the first 20", () => {
  const { call, recorded } = setup({
    prepare: (request) => () => {
      const { quote, freshness } = toQuote(request);
      return { quote: request.amountIn < 60n ? quote : { ...quote, exceededBurnLimit: 59n }, freshness };
    },
  });
  const amount = Array.from({ length: 80 }, (_, index) => `${index + 1}`);
  call({ ...SHARED, toChain: ["optimism"], amount });
  expect(recorded.warnings).toEqual([
    expect.stringMatching(/: USDT polygon>optimism 60 \(limit 59\), .* 79 \(limit 59\), and 1 more$/),
  ]);
});

test("repeats no more than 100 characters of what was requested", () => {
  const long = "9".repeat(5_000);
  const [first] = callNow({ ...SHARED, toChain: [long], amount: [long] }).results;
  expect([first?.toChain, first?.amount]).toEqual(["9".repeat(100), "9".repeat(100)]);
});

test("quotes requests of any routes in their order", () => {
  const { call, recorded } = setup();
  const request = { amount: "1", token: "USDT", fromChain: "polygon", toChain: "optimism", slippage: 0.5 };
  const response = call({
    requests: [
      { ...request, token: "usdt.e" },
      { ...request, network: "goerli", token: "ETH", fromChain: "ethereum" },
      { ...request, fromChain: "optimism", toChain: "polygon" },
      { ...request, amount: "", receiveAmount: "8", view: "FULL" },
    ],
  }) as BatchGetQuotesResponse;
  expect(response.results.map(({ result }) => result.case)).toEqual(["error", "quote", "quote", "quote"]);
  // Each network has its own settings.
  expect(recorded.calls).toEqual(["count 4", "prepare 1", "prepare 2"]);
  expect(recorded.prepared.map(({ network }) => network)).toEqual(["goerli", "mainnet", "mainnet"]);
  expect(recorded.prepared[2]).toMatchObject({ receiveAmount: 8n, isFull: true });
});

test("a failing quote leaves the others alone, and an internal error is logged", async () => {
  const error = new TypeError("mine");
  const fail = (reason: Error) => (): never => {
    throw reason;
  };
  const failures = new Map([
    [1n, fail(error)],
    [2n, fail(new ServiceError("UPSTREAM_UNAVAILABLE", "optimism does not respond"))],
  ]);
  const { call, recorded } = setup({
    prepare: (request) =>
      request.amountIn === 3n
        ? Promise.reject(new ServiceError("UPSTREAM_UNAVAILABLE", "no plan"))
        : (failures.get(request.amountIn) ?? (() => toQuote(request))),
  });
  const response = await call({ ...SHARED, toChain: ["optimism"], amount: ["1", "2", "3", "4"] });
  expect(summarize(response).map(([, , outcome]) => outcome)).toEqual([
    ...["INTERNAL", "UPSTREAM_UNAVAILABLE", "UPSTREAM_UNAVAILABLE", "4"],
  ]);
  expect(recorded.internal).toEqual([error]);
  expect(recorded.logFields).toMatchObject({ quotes: 4, failed: 3 });
  expect(recorded.counts.map((counts) => Object.fromEntries(counts))).toEqual([
    { "": 1, INTERNAL: 1, UPSTREAM_UNAVAILABLE: 2 },
  ]);
  // No error is cached.
  expect(recorded.cache).toEqual(["private"]);
});

test.each([[["1", "2"]], [["2", "1"]]])("may be cached until the first of its quotes is too old: %j", (amount) => {
  const { call, recorded } = setup({
    prepare: (request) => () => ({
      ...toQuote(request),
      freshness: request.amountIn === 1n ? FRESHNESS : { ageMs: 3_000, maxAgeMs: 24_000, refreshMs: 12_000 },
    }),
  });
  call({ ...SHARED, toChain: ["optimism"], amount });
  expect(recorded.cache).toEqual([{ ageSeconds: 3, maxAgeSeconds: 6, staleWhileRevalidateSeconds: 2 }]);
});

test("is counted before any work, and refused with the rejection", async () => {
  const rejection = new ServiceError("RATE_LIMITED", "too many requests");
  const { call, recorded } = setup({ count: () => Promise.reject(rejection) });
  await expect(call({ ...SHARED, toChain: ["optimism"], amount: ["1", "2"] })).rejects.toBe(rejection);
  expect(recorded.calls).toEqual(["count 2"]);
});

test("waits for the settings", async () => {
  const response = await setup({ hasSettings: false }).call({ ...SHARED, amount: ["1"], toChain: ["optimism"] });
  expect(summarize(response)).toEqual([["optimism", "1", "1"]]);
});

test("answers with the quotes at hand before the deadline", async () => {
  vi.useFakeTimers();
  const { call, quota } = setup({
    remainingMs: 1_000,
    prepare: (request) => (request.amountIn === 1n ? new Promise(() => {}) : () => toQuote(request)),
  });
  const response = Promise.resolve(call({ ...SHARED, toChain: ["optimism"], amount: ["1", "2"] }));
  expect(quota.heldCount()).toBe(2);
  await vi.advanceTimersByTimeAsync(949);
  expect(quota.heldCount()).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(summarize(await response).map(([, , outcome]) => outcome)).toEqual(["DEADLINE_EXCEEDED", "2"]);
  expect(quota.heldCount()).toBe(0);
});

test("computes nothing after its caller has left", async () => {
  // The deadline does not pass.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const computed: bigint[] = [];
  const inputs = createDeferred<void>();
  const { call, caller } = setup({
    prepare: (request) =>
      inputs.promise.then(() => () => {
        computed.push(request.amountIn);
        return toQuote(request);
      }),
  });
  const response = call({ ...SHARED, toChain: ["optimism"], amount: ["1", "2"] });
  caller.abort();
  await response;
  inputs.resolve();
  await flushEventLoop();
  expect(computed).toEqual([]);
});

test("is refused before any work if too many quotes of batches are waiting", async () => {
  const { call, quota, recorded } = setup({ capacity: 10, prepare: () => new Promise(() => {}) });
  const batchOf = (count: number) => ({ ...SHARED, toChain: ["optimism"], amount: Array(count).fill("1") });
  void call(batchOf(5));
  const callsBefore = [...recorded.calls];
  await expect(async () => call(batchOf(1))).rejects.toMatchObject({ reason: "OVERLOADED", retryAfterSeconds: 1 });
  expect([recorded.calls, recorded.counts]).toEqual([[...callsBefore, "count 1"], []]);
  expect(quota.heldCount()).toBe(5);
});

test("holds no slots after a response at once", () => {
  const { call, quota } = setup({ capacity: 10 });
  call({ ...SHARED, toChain: ["optimism"], amount: ["1", "2"] });
  expect(quota.heldCount()).toBe(0);
});
