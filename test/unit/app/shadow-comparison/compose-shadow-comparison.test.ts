import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { composeShadowComparison } from "../../../../src/app/shadow-comparison/compose-shadow-comparison.js";
import { createRecentDifferences } from "../../../../src/app/shadow-comparison/recent-differences.js";
import { createFeeSettingsSource } from "../../../../src/hop/fee-settings-source.js";
import type { QuoteEngine } from "../../../../src/quotes/quote-engine.js";
import { parseRequest } from "../../../../src/quotes/shadow-comparison/comparison-case.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";
import type { SharedState } from "../../../../src/shared-state/shared-state.js";
import { createSharedProcesses, type SharedProcesses } from "../../../support/stubs/shared-processes.js";

// Which process compares, and what it quotes. The quotes fail, so that no process of the SDK is started.

const createRequest = (amount: string): QuoteRequest =>
  parseRequest({
    ...{ network: "mainnet", token: "ETH", fromChain: "arbitrum", toChain: "optimism", slippagePercent: 0.5, amount },
  });

let processes: SharedProcesses;
const closing: (() => void)[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "setTimeout", "clearInterval", "clearTimeout", "Date"] });
  processes = createSharedProcesses();
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  processes.close();
  vi.useRealTimers();
});

function start(sharedState: SharedState | undefined, intervalSeconds = 600) {
  const asked: string[] = [];
  const results: string[] = [];
  const differences = createRecentDifferences();
  const comparison = composeShadowComparison({
    ...{ intervalSeconds, version: "1", sharedState, differences },
    chains: {
      forBackground: () => {
        throw new Error("not expected");
      },
    },
    offChainSources: { settings: createFeeSettingsSource(undefined), attestations: undefined },
    metrics: { onQuoteComparison: (result) => void results.push(result) },
    logger: { debug() {}, info() {}, warn() {} },
  });
  const engine: Pick<QuoteEngine, "quote"> = {
    async quote({ amountIn, receiveAmount }) {
      asked.push(String(receiveAmount ?? amountIn));
      throw new Error("no endpoint responds");
    },
  };
  comparison.start(engine);
  closing.push(comparison.close);
  return {
    asked,
    results,
    differences,
    comparison,
    serve: (amount: string) => void comparison.onQuoteServed(createRequest(amount)),
  };
}

/** Lets time pass, with what the modules and messages of a comparison take. */
async function pass(seconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(seconds * 1_000);
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("compares nothing before the interval has passed, nor while nobody asks for a quote", async () => {
  const { asked, results, serve } = start(undefined);
  await pass(599);
  serve("7");
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  await vi.waitFor(() => expect(results).toEqual(["failed"]), { timeout: 60_000 });
  expect(asked).toEqual(["7"]);
  await pass(1_800);
  expect(asked).toEqual(["7"]);
});

test("one of several processes compares, also what only the others were asked for", async () => {
  const all = [start(processes.start().sharedState), start(processes.start().sharedState)];
  // The reader is chosen.
  await pass(1);
  all[1]?.serve("8");
  await pass(600);
  expect(all.map(({ asked }) => asked)).toEqual([[], []]);
  await vi.advanceTimersByTimeAsync(600_000);
  await vi.waitFor(() => expect(all[0]?.results).toEqual(["failed"]), { timeout: 60_000 });
  expect(all.map(({ asked }) => asked)).toEqual([["8"], []]);
});

test("every process keeps the differences that one has found, and refuses anything else", async () => {
  const publisher = processes.start().sharedState.join("quote comparison", {
    ...{ onPublished() {}, onBecomeReader() {}, onRequest: async () => undefined },
  });
  const other = start(processes.start().sharedState);
  await pass(1);
  publisher.publish('{"id":"abc"}');
  publisher.publish("garbage");
  await pass(1);
  expect(JSON.parse(other.differences.readDocument().body)).toEqual({ differences: [{ id: "abc" }] });
});

test("refuses samples of other processes that are no requests", async () => {
  const reader = start(processes.start().sharedState);
  await pass(1);
  const other = processes.start().sharedState.join("quote comparison", {
    ...{ onPublished() {}, onBecomeReader() {}, onRequest: async () => undefined },
  });
  const request = {
    network: "mainnet",
    token: "ETH",
    fromChain: "arbitrum",
    toChain: "optimism",
    slippagePercent: 0.5,
  };
  const send = async (sample: unknown) => {
    const reply = other.request(JSON.stringify(sample));
    await pass(3);
    return reply;
  };
  expect(await send({ count: 1, request: { ...request, amount: "1" } })).toBe("taken");
  expect(await send({ count: 1, request: { ...request, amount: "0", receiveAmount: "5" } })).toBe("taken");
  expect(await send({ count: 0, request: { ...request, amount: "1" } })).toBeUndefined();
  expect(await send({ count: 1, request: { ...request, amount: "-1" } })).toBeUndefined();
  expect(await send({ count: 1, request: { ...request, amount: "0" } })).toBeUndefined();
  expect(await send({ count: 1, request: { ...request, amount: "1", token: "no" } })).toBeUndefined();
  for (const slippagePercent of [100, -1, "0.5", null]) {
    expect(await send({ count: 1, request: { ...request, amount: "1", slippagePercent } })).toBeUndefined();
  }
  expect(reader.asked).toEqual([]);
});
