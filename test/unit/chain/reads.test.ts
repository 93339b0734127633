import { describe, expect, test } from "vitest";
import type { BlockRange, ChainClient } from "../../../src/chain/chain-client.js";
import { readHeader, readLogPage } from "../../../src/chain/reads.js";
import { blocksOf, filter, headerOf, logChain, logIn } from "./logs.js";

const never = new AbortController().signal;
const unlikeHop = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("optimism") };
const hash = headerOf(9).hash;

function saying(result: unknown) {
  const asked: unknown[] = [];
  const client: ChainClient = {
    slug: "optimism",
    async send(method, params) {
      asked.push([method, ...params]);
      return result;
    },
    batch: () => Promise.reject(new Error("no batches")),
    logs: async (_, range) => ({ result, range }),
  };
  return { client, asked };
}

describe("a header", () => {
  test.each([
    [9, ["eth_getBlockByNumber", "0x9", false]],
    ["latest", ["eth_getBlockByNumber", "latest", false]],
    ["finalized", ["eth_getBlockByNumber", "finalized", false]],
    [hash, ["eth_getBlockByHash", hash, false]],
  ])("is asked for by %s", async (block, question) => {
    const { client, asked } = saying(headerOf(9, 1_700_000_000));
    expect(await readHeader(client, block, never)).toEqual({ number: 9, hash, timestamp: 1_700_000_000 });
    expect(asked).toEqual([question]);
  });

  test("may not be there", async () => {
    expect(await readHeader(saying(null).client, 9, never)).toBeUndefined();
  });

  test.each([
    ["another number", 8, headerOf(9)],
    ["another hash", headerOf(8).hash, headerOf(9)],
    ["no number", "latest", { ...headerOf(9), number: 9 }],
    ["no hash", "latest", { ...headerOf(9), hash: "0x12" }],
    ["no time", "latest", { ...headerOf(9), timestamp: "soon" }],
    ["a word", "latest", "0x9"],
  ])("with %s is none", async (_, block, answer) => {
    await expect(readHeader(saying(answer).client, block, never)).rejects.toMatchObject(unlikeHop);
  });
});

describe("a page of logs", () => {
  const page = (result: unknown, range: BlockRange = { from: 10, to: 20 }) =>
    readLogPage(saying(result).client, filter, range, { newestFirst: false }, never);

  test("comes in the order of the chain", async () => {
    const { logs, range } = await page([logIn(17), logIn(16, 2), logIn(16, 0x10), logIn(11)]);
    expect(blocksOf(logs)).toEqual([11, 16, 16, 17]);
    expect(logs.map(({ logIndex }) => logIndex)).toEqual(["0x0", "0x2", "0x10", "0x0"]);
    expect(range).toEqual({ from: 10, to: 20 });
  });

  test("is without what was not asked for", async () => {
    const other = `0x${"b2".repeat(20)}`;
    const upper = { ...logIn(12), topics: [(filter.topics[0] as string).toUpperCase().replace("0X", "0x")] };
    const result = [
      logIn(9),
      logIn(21),
      { ...logIn(13), address: other },
      { ...logIn(14), topics: [logIn(14).blockHash] },
      { ...logIn(15), removed: true },
      { ...logIn(16), removed: false },
      upper,
    ];
    expect(blocksOf((await page(result)).logs)).toEqual([12, 16]);
  });

  test.each([
    ["no list", {}],
    ["nothing", null],
    ["no block hash", [{ ...logIn(12), blockHash: undefined }]],
    ["a number out of this world", [{ ...logIn(12), blockNumber: `0x${"f".repeat(40)}` }]],
    ["a topic that is none", [{ ...logIn(12), topics: ["0x1"] }]],
  ])("with %s is none", async (_, result) => {
    await expect(page(result)).rejects.toMatchObject(unlikeHop);
  });

  test("up to the head is all where an endpoint takes that, else the last part of it", async () => {
    const latest = { from: 0, to: "latest" } as const;
    const whole = logChain([1, 99_000]);
    const everything = await readLogPage(whole.client, filter, latest, { newestFirst: true }, never);
    expect([blocksOf(everything.logs), everything.range]).toEqual([
      [1, 99_000],
      { from: 0, to: Number.POSITIVE_INFINITY },
    ]);
    const narrow = logChain([1, 99_000], { most: 2_000 });
    const newest = await readLogPage(narrow.client, filter, latest, { newestFirst: true }, never);
    expect([blocksOf(newest.logs), newest.range]).toEqual([[99_000], { from: 98_001, to: 100_000 }]);
  });

  test("after the head is empty", async () => {
    const { client, state } = logChain([1], { most: 2_000 });
    const after = await readLogPage(client, filter, { from: 100_001, to: "latest" }, { newestFirst: true }, never);
    expect([after.logs, state.pages]).toEqual([[], []]);
  });
});
