import { expect, test } from "vitest";
import { type Answer, compareAnswers } from "../../../src/commands/compare-answers.js";

const QUOTE = "/v1/quote?amount=1000000";
const STATUS = "/v1/transfer-status?transferId=0x1";
const ROUTES = "/v1/available-routes";

const answer = (body: unknown, status = 200): Answer => ({ status, body, durationMs: 1 });
const compare = (path: string, old: unknown, current: unknown, tolerancePercent = 0.5) =>
  compareAnswers(path, answer(old), answer(current), tolerancePercent);

test.each<[string, object, object]>([
  ["within the tolerance", { bonderFee: "1000000" }, { bonderFee: "1005000" }],
  ["within the tolerance, as numbers", { details: { rate: 0.99 } }, { details: { rate: 0.992 } }],
  ["of times within a minute", { deadline: 1_795_818_089, observedAt: 5 }, { deadline: 1_795_818_149, observedAt: 60 }],
  ["in the case of hex", { bridge: "0xABcd" }, { bridge: "0xabCD" }],
])("finds no difference in numbers of quotes %s", (_, old, current) => {
  expect(compare(QUOTE, old, current)).toEqual([]);
  expect(compare("/v1/quotes?token=ETH", { results: [{ quote: old }] }, { results: [{ quote: current }] })).toEqual([]);
});

test("does not compare what is another number with each block or delivery", () => {
  const details = (factor: number) => ({
    ...{ sourceBlock: 10 * factor, destinationBlock: 20 * factor, validUntil: 1_795_818_000 + factor },
    ...{
      gas: { gasPrice: `${100 * factor}`, l1Fee: `${7 * factor}` },
      deliveryTime: { samples: factor, p50Seconds: factor },
    },
    ...{ prices: { tokenUpdatedAt: 1_795_800_000 * factor, nativeUpdatedAt: 0 } },
  });
  expect(compare(QUOTE, { details: details(1) }, { details: details(2) })).toEqual([]);
  expect(compare(STATUS, { estimatedDeliveryAt: 1_795_818_000 }, { estimatedDeliveryAt: 1_795_819_000 })).toEqual([]);
  const list = "/v1/transfers?account=0x1";
  expect(compare(list, { coveredUntil: 1_795_818_000 }, { coveredUntil: 1_795_818_060 })).toEqual([]);
  // Another type is a difference all the same.
  const [before, after] = [{ gas: { gasPrice: "100" } }, { gas: { gasPrice: 100 } }];
  expect(compare(QUOTE, before, after)).toMatchObject([{ field: "gas.gasPrice", kind: "value" }]);
});

test.each<[string, object, object, object]>([
  [QUOTE, { validUntil: 1_795_818_089 }, { validUntil: 1_795_818_150 }, { kind: "time" }],
  [QUOTE, { bonderFee: "1000000" }, { bonderFee: "994000" }, { kind: "value", relativePercent: -0.6 }],
  [QUOTE, { bonderFee: "0" }, { bonderFee: "1" }, { kind: "value" }],
  [QUOTE, { amountIn: "1000000" }, { amountIn: "1000001" }, { kind: "value", relativePercent: 0.0001 }],
  [QUOTE, { slippage: "0.5" }, { slippage: 0.5 }, { kind: "value" }],
  [QUOTE, { deadline: 1_795_818_089 }, { deadline: 1_795_818_150 }, { kind: "time" }],
  [QUOTE, { token: "ETH" }, { token: "WETH" }, { kind: "value" }],
  [QUOTE, { bonded: null }, { bonded: false }, { kind: "value" }],
  [QUOTE, { list: ["1"] }, { list: "1" }, { kind: "value" }],
  [STATUS, { amount: "1000" }, { amount: "1001" }, { kind: "value", relativePercent: 0.1 }],
  [STATUS, { sourceChainId: 42_161 }, { sourceChainId: 42_170 }, { kind: "value" }],
  [STATUS, { timestamp: 1_700_000_000 }, { timestamp: 1_700_000_001 }, { kind: "value" }],
])("finds the difference in a field of %s from %j to %j", (path, old, current, difference) => {
  const [field = ""] = Object.keys(old);
  const [[before], [after]] = [Object.values(old), Object.values(current)];
  const found = compare(path, old, current);
  expect(found).toMatchObject([{ field, old: before, new: after, ...difference }]);
});

test("finds dollars of a status equal within the tolerance, and no others", () => {
  expect(compare(STATUS, { amountUsd: 100 }, { amountUsd: 100.4 })).toEqual([]);
  expect(compare(STATUS, { amountUsd: 100 }, { amountUsd: 100.6 })).toMatchObject([{ field: "amountUsd" }]);
  expect(compare(STATUS, { amountUsd: 100 }, { amountUsd: 102 }, 2)).toEqual([]);
});

test("finds what is sent for an exact output equal within the tolerance", () => {
  const path = "/v1/quote?token=ETH&receiveAmount=1000";
  expect(compare(path, { amountIn: "1000000" }, { amountIn: "1000001" })).toEqual([]);
  expect(compare(path, { amountIn: "1000000" }, { amountIn: "1010000" })).toMatchObject([{ field: "amountIn" }]);
});

test("names fields that only one answer has, with their path", () => {
  const old = { estimatedRecieved: "1", details: { limits: { a: 1 } }, transfers: [{ id: 1 }] };
  const current = {
    estimatedReceived: "1",
    details: { limits: {} },
    transfers: [{ id: 1, state: "BONDED" }, { id: 2 }],
  };
  expect(compare(QUOTE, old, current)).toEqual([
    { field: "estimatedRecieved", kind: "missing", old: "1" },
    { field: "details.limits.a", kind: "missing", old: 1 },
    { field: "transfers[0].state", kind: "added", new: "BONDED" },
    { field: "transfers[1]", kind: "added", new: { id: 2 } },
    { field: "estimatedReceived", kind: "added", new: "1" },
  ]);
});

test("compares routes whatever their order", () => {
  const route = (token: string, sourceChainId = 10) => ({
    ...{ token, sourceChainSlug: "optimism", sourceChainId },
    ...{ destinationChainSlug: "base", destinationChainId: 8453 },
  });
  expect(compare(ROUTES, [route("ETH"), route("DAI")], [route("DAI"), route("ETH")])).toEqual([]);
  expect(compare(ROUTES, [route("ETH"), route("DAI")], [route("ETH", 11), route("HOP")])).toMatchObject([
    { field: "ETH:optimism:base.sourceChainId", kind: "value", old: 10, new: 11 },
    { field: "DAI:optimism:base", kind: "missing" },
    { field: "HOP:optimism:base", kind: "added" },
  ]);
  expect(compare(ROUTES, { routes: [route("ETH")] }, [route("ETH")])).toEqual([
    { field: "body", kind: "value", old: "a JSON object", new: "an array" },
  ]);
});

test("compares the status alone where one answer is an error", () => {
  const error = answer({ error: "no" }, 404);
  expect(compareAnswers(QUOTE, answer({}), error, 0)).toEqual([
    { field: "status", kind: "status", old: 200, new: 404 },
  ]);
  expect(compareAnswers(QUOTE, answer({ error: "another text" }, 404), error, 0)).toEqual([]);
  expect(compare(QUOTE, undefined, {})).toEqual([
    { field: "body", kind: "value", old: "no JSON", new: "a JSON object" },
  ]);
});
