import { describe, expect, test } from "vitest";
import type { BlockRange, ChainClient } from "../../../../src/chain/chain-client.js";
import {
  readBlockHeader,
  readLatestBlockHeader,
  readLogPage,
  readReceipt,
  readRequiredBlockHeader,
  readRequiredReceipt,
  readSender,
  readUint,
} from "../../../../src/chain/read/chain-reads.js";
import {
  blockNumbersOf,
  createClientStub,
  createHeader,
  createLogChainStub,
  createRpcLog,
  logFilter,
} from "../support/log-chain-stub.js";
import { type NodeCall, never, returning, startPool } from "../support/rpc-node-stub.js";

const invalid = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("optimism") };
const hash = createHeader(9).hash;
const receipt = { transactionHash: hash, blockHash: hash, from: `0x${"a1".repeat(20)}`, logs: [] };

function saying(result: unknown) {
  const asked: unknown[] = [];
  const client = createClientStub({
    async send(method, params) {
      asked.push([method, ...params]);
      return result;
    },
    getLogs: async ({ range }) => ({ result, range }),
  });
  return { client, asked };
}

describe("readBlockHeader", () => {
  test.each([
    [9, ["eth_getBlockByNumber", "0x9", false]],
    ["latest", ["eth_getBlockByNumber", "latest", false]],
    ["finalized", ["eth_getBlockByNumber", "finalized", false]],
    [hash, ["eth_getBlockByHash", hash, false]],
  ])("reads a block by %s", async (block, question) => {
    const { client, asked } = saying(createHeader(9, 1_700_000_000));
    expect(await readBlockHeader(client, block, never)).toEqual({ number: 9, hash, timestamp: 1_700_000_000 });
    expect(asked).toEqual([question]);
  });

  test("returns undefined for null", async () => {
    expect(await readBlockHeader(saying(null).client, 9, never)).toBeUndefined();
  });

  test.each([
    ["another number", 8, createHeader(9)],
    ["another hash", createHeader(8).hash, createHeader(9)],
    ["no number", "latest", { ...createHeader(9), number: 9 }],
    ["a number out of this world", "latest", { ...createHeader(9), number: "0x20000000000000" }],
    ["a time out of this world", "latest", { ...createHeader(9), timestamp: `0x${"f".repeat(13)}` }],
    ["no hash", "latest", { ...createHeader(9), hash: "0x12" }],
    ["no time", "latest", { ...createHeader(9), timestamp: "soon" }],
    ["a word", "latest", "0x9"],
  ])("rejects %s", async (_, block, answer) => {
    await expect(readBlockHeader(saying(answer).client, block, never)).rejects.toMatchObject(invalid);
  });
});

test("an impossible result is retried at the next endpoint", async () => {
  const asked = { ...receipt, transactionHash: createHeader(8).hash };
  const { client, failures } = await startPool([returning(receipt), returning(asked)]);
  expect(await readReceipt(client, asked.transactionHash, never)).toEqual(asked);
  expect(failures).toMatchObject([{ error: "returned an impossible result" }]);
  const uint = await startPool([returning("0x"), returning(hash)]);
  expect(await readUint(uint.client, asked.from, "0x", never)).toBe(BigInt(hash));
});

test.each([
  ["newest block", createHeader(9), (client: ChainClient) => readLatestBlockHeader(client, never)],
  ["block", createHeader(9), (client: ChainClient) => readRequiredBlockHeader(client, createHeader(9).hash, never)],
  ["block by number", createHeader(9), (client: ChainClient) => readRequiredBlockHeader(client, 9, never)],
  ["receipt", receipt, (client: ChainClient) => readRequiredReceipt(client, hash, never)],
  ["sender", receipt, (client: ChainClient) => readSender(client, hash, never)],
])("a required %s that one endpoint does not have is read from the next", async (_, there, read) => {
  const { client, failures } = await startPool([null, there].map((result) => ({ ...returning(result), head: result })));
  expect(await read(client)).toBeDefined();
  expect(failures).toMatchObject([{ error: "does not have data that its chain has" }]);
  await expect(read(saying(null).client)).rejects.toMatchObject(invalid);
});

test("an endpoint that lacks old data stays the first choice for other reads", async () => {
  const saying = (found: unknown, other: string) => ({
    respond: ({ method }: NodeCall) => ({ result: method === "eth_getTransactionReceipt" ? found : other }),
  });
  const { client, send } = await startPool([saying(null, "0xa"), saying(receipt, "0xb")]);
  for (let each = 0; each < 6; each++) expect(await readRequiredReceipt(client, hash, never)).toEqual(receipt);
  expect(await send()).toBe("0xa");
});

describe("readLogPage", () => {
  const page = (result: unknown, range: BlockRange = { from: 10, to: 20 }) =>
    readLogPage(saying(result).client, { filter: logFilter, range }, never);

  test("returns logs in chain order", async () => {
    const { logs, range } = await page(
      [[17], [16, 2], [16, 0x10], [11]].map(([block = 0, index]) => createRpcLog(block, index)),
    );
    expect(blockNumbersOf(logs)).toEqual([11, 16, 16, 17]);
    expect(logs.map(({ logIndex }) => logIndex)).toEqual([0, 2, 16, 0]);
    expect(range).toEqual({ from: 10, to: 20 });
  });

  test("leaves out logs that do not match", async () => {
    const other = `0x${"b2".repeat(20)}`;
    const upper = { ...createRpcLog(12), topics: [(logFilter.topics[0] as string).toUpperCase().replace("0X", "0x")] };
    const result = [
      createRpcLog(9),
      createRpcLog(21),
      { ...createRpcLog(13), address: other },
      { ...createRpcLog(14), topics: [createRpcLog(14).blockHash] },
      { ...createRpcLog(15), removed: true },
      { ...createRpcLog(16), removed: false },
      upper,
    ];
    expect(blockNumbersOf((await page(result)).logs)).toEqual([12, 16]);
  });

  test.each([
    ["no list", {}],
    ["nothing", null],
    ["an invalid log", [{ ...createRpcLog(12), blockHash: undefined }]],
  ])("rejects %s", async (_, result) => {
    await expect(page(result)).rejects.toMatchObject(invalid);
  });

  const readNewest = (client: ChainClient, from: number) =>
    readLogPage(client, { filter: logFilter, range: { from, to: "latest" }, newestFirst: true }, never);

  test.each([
    ["everything up to the head where an endpoint accepts that", undefined, [1, 99_000], [0, Number.POSITIVE_INFINITY]],
    ["the last part otherwise", 2_000, [99_000], [98_001, 100_000]],
  ])("reads %s", async (_, maxLogBlocks, blocks, [from, to]) => {
    const { client } = createLogChainStub([1, 99_000], maxLogBlocks === undefined ? {} : { maxLogBlocks });
    const { logs, range } = await readNewest(client, 0);
    expect([blockNumbersOf(logs), range]).toEqual([blocks, { from, to }]);
  });

  test("returns nothing after the head", async () => {
    const { client, state } = createLogChainStub([1], { maxLogBlocks: 2_000 });
    expect([(await readNewest(client, 100_001)).logs, state.pages]).toEqual([[], []]);
  });
});
