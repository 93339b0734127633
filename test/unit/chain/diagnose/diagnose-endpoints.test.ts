import { Agent } from "undici";
import { beforeEach, describe, expect, test } from "vitest";
import { diagnoseEndpoints, type EndpointReport } from "../../../../src/chain/diagnose/diagnose-endpoints.js";
import { BURST_CALLS } from "../../../../src/chain/diagnose/endpoint-capabilities.js";
import { createEndpointNamer } from "../../../../src/chain/endpoints/endpoint-name.js";
import { monotonicNow } from "../../../../src/resilience/clock.js";
import { createHeader } from "../support/log-chain-stub.js";
import {
  answerJson,
  answerStatus,
  hang,
  healthy,
  never,
  type RpcNodeStub,
  startRpcNodeStub,
} from "../support/rpc-node-stub.js";

const CHAIN_ID = 10;
const HEAD = 5_000_000;
const multicall = "0xca11bde05977b3631167028862be2a173976ca11";
const filter = { address: [`0x${"aa".repeat(20)}`], topics: [] };
const word = (value: number): string => value.toString(16).padStart(64, "0");
const hex = (number: number): string => `0x${number.toString(16)}`;
/** Result of Multicall3 for one call that returns one word. */
const oneWord = `0x${[32, 1, 32, 1, 64, 32, HEAD].map(word).join("")}`;

const RATE_LIMIT = { error: { code: -32005, message: "rate limit" } };
const NO_METHOD = { error: { code: -32601, message: "method not found" } };
const rejectBatch = answerJson({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "batch too large" } });
const createHead = (number: number, ageSeconds = 2) =>
  createHeader(number, Math.floor(Date.now() / 1_000) - ageSeconds);

type Request = Parameters<RpcNodeStub["intercept"]>[0];
type Answer = ReturnType<RpcNodeStub["respond"]>;

/** How an endpoint differs from one with all capabilities. */
interface Differences {
  readonly chainId?: number;
  /** Its latest block. */
  readonly head?: unknown;
  readonly delayMs?: number;
  readonly maxCalls?: number;
  readonly maxBlocks?: number;
  readonly logError?: string;
  readonly intercept?: (request: Request) => boolean;
  /** Answers to some methods. */
  readonly answers?: Readonly<Record<string, (params: readonly unknown[]) => Answer | undefined>>;
}

/** The methods of each request to any endpoint of the test. */
const requests: string[] = [];
beforeEach(() => {
  requests.length = 0;
});
const countRequests = (method: string): number => requests.filter((each) => each === method).length;

async function startEndpoint(differences: Differences): Promise<string> {
  const { chainId = CHAIN_ID, maxCalls = 1_000, intercept = healthy } = differences;
  const head = "head" in differences ? differences.head : createHead(HEAD);
  const { maxBlocks = Number.POSITIVE_INFINITY, logError = "no", answers = {}, delayMs = 0 } = differences;
  function searchLogs([search]: readonly unknown[]): Answer {
    const { fromBlock, toBlock } = search as { fromBlock: string; toBlock: string };
    const blocks = (toBlock === "latest" ? HEAD : Number(toBlock)) - Number(fromBlock) + 1;
    return blocks > maxBlocks ? { error: { code: -32000, message: logError } } : { result: [] };
  }
  function respond({ method, params }: { method: string; params: readonly unknown[] }): Answer {
    const answer = answers[method]?.(params);
    if (answer !== undefined) return answer;
    if (method === "eth_getLogs") return searchLogs(params);
    return { result: method === "eth_call" ? oneWord : hex(HEAD) };
  }
  const node = await startRpcNodeStub({
    ...{ chainId, head, delayMs, respond },
    intercept(request) {
      requests.push(request.calls.map(({ method }) => method).join());
      return request.calls.length > maxCalls ? rejectBatch(request) : intercept(request);
    },
  });
  return node.url;
}

async function check(
  endpoints: readonly (Differences | string)[],
  { attemptTimeoutMs = 30_000, signal = never, withMulticall = true, now = monotonicNow } = {},
): Promise<readonly EndpointReport[]> {
  const options = {
    ...{ slug: "optimism", chainId: CHAIN_ID, filter, attemptTimeoutMs, now, wallNow: () => Date.now() },
    urls: await Promise.all(endpoints.map((each) => (typeof each === "string" ? each : startEndpoint(each)))),
    nameEndpoint: createEndpointNamer(),
    multicall: withMulticall ? multicall : undefined,
    dispatcher: new Agent(),
  };
  return diagnoseEndpoints(options, signal);
}

async function checkOne(differences: Differences, options = {}): Promise<EndpointReport> {
  const [report] = await check([differences], options);
  if (report === undefined) throw new Error("no report");
  return report;
}

describe("an endpoint with all capabilities", () => {
  test("is reported completely, with few requests", async () => {
    const report = await checkOne({});
    expect(report).toEqual({
      name: expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/),
      chainId: CHAIN_ID,
      head: { number: HEAD, ageSeconds: expect.any(Number) },
      lag: { blocks: 0, seconds: 0 },
      latencyMs: expect.any(Number),
      contracts: "together",
      batch: 50,
      callsAtOnce: 40,
      logBlocks: Number.POSITIVE_INFINITY,
    });
    expect(report.head?.ageSeconds).toBeGreaterThanOrEqual(2);
    expect(report.head?.ageSeconds).toBeLessThan(10);
    expect(requests).toHaveLength(12 + BURST_CALLS);
  });

  test("has the median latency of small calls", async () => {
    let ms = 0;
    const latencies = [400, 40, 60];
    const answers = {
      eth_blockNumber() {
        ms += latencies.shift() ?? 0;
        return undefined;
      },
    };
    expect((await checkOne({ answers }, { now: () => ms })).latencyMs).toBe(60);
  });
});

describe("the chain", () => {
  test("a wrong chain id is reported, and nothing else is read", async () => {
    expect(await checkOne({ chainId: 8453 })).toEqual({ name: expect.any(String), chainId: 8453 });
    expect(requests).toEqual(["eth_chainId"]);
  });

  const rejectAll = ({ calls: [call], response }: Request): boolean =>
    answerJson({ id: call?.id, error: { code: -32005, message: "who are you?" } })({
      calls: [],
      isBatch: false,
      response,
    });
  test.each([
    ["an HTTP status", answerStatus(401), "answered 401: the key is not accepted"],
    ["an error", rejectAll, "answered JSON-RPC error -32005"],
    ["silence", hang, "did not answer in time"],
  ])("reports trouble: %s", async (_, intercept, trouble) => {
    const options = intercept === hang ? { attemptTimeoutMs: 300 } : {};
    expect(await checkOne({ intercept }, options)).toEqual({ name: expect.any(String), trouble });
  });

  test("reports a refused connection without the URL", async () => {
    const [report] = await check(["http://key:secret@127.0.0.1:1/secret"]);
    expect(report).toEqual({ name: expect.stringMatching(/^optimism\[1\]#/), trouble: "connection refused" });
  });
});

describe("heads", () => {
  test("lag behind the best one on the right chain", async () => {
    const [behind, best, other] = await check([
      { head: createHead(HEAD - 20, 62) },
      {},
      { chainId: 1, head: createHead(HEAD * 10) },
      { intercept: answerStatus(500) },
    ]);
    expect(behind?.lag?.blocks).toBe(20);
    expect(behind?.lag?.seconds).toBeGreaterThan(55);
    expect(behind?.lag?.seconds).toBeLessThan(65);
    expect(best?.lag).toEqual({ blocks: 0, seconds: 0 });
    expect(other?.lag).toBeUndefined();
  });

  test("of the future are not compared with others", async () => {
    const [good, future] = await check([{}, { head: createHead(HEAD + 100, -100) }]);
    expect(good?.lag).toEqual({ blocks: 0, seconds: 0 });
    expect(future?.head?.number).toBe(HEAD + 100);
    expect(future?.lag).toBeUndefined();
  });

  test("are read together, also when one responds late", async () => {
    await check([{ delayMs: 300 }, {}]);
    const firstHead = requests.indexOf("eth_getBlockByNumber");
    expect(requests.slice(0, firstHead).filter((method) => method === "eth_chainId")).toHaveLength(2);
    expect(requests.slice(firstHead, firstHead + 2)).toEqual(["eth_getBlockByNumber", "eth_getBlockByNumber"]);
  });

  test.each([
    ["an error", undefined],
    ["no block", null],
  ])("stay unknown, like everything that needs one, where the node returns %s", async (_, head) => {
    expect(await checkOne({ head })).toEqual({ name: expect.any(String), chainId: CHAIN_ID });
  });
});

describe("batches", () => {
  test.each([
    [1, 1],
    [3, 2],
    [10, 10],
    [49, 20],
  ])("with a limit of %i calls: %i", async (maxCalls, batch) => {
    expect((await checkOne({ maxCalls })).batch).toBe(batch);
  });

  test("stay unknown under rate limiting", async () => {
    const limit = answerStatus(429);
    // Single calls succeed.
    const intercept = (request: Request) => request.isBatch && limit(request);
    expect((await checkOne({ intercept })).batch).toBeUndefined();
  });
});

describe("contracts", () => {
  test.each([
    ["no contract code", { result: "0x" }, "singly"],
    ["invalid results", { result: `0x${word(7)}` }, "none"],
    ["rejected calls", NO_METHOD, "none"],
    ["reverts", { error: { code: 3, message: "execution reverted" } }, "none"],
    ["a rate limit", RATE_LIMIT, undefined],
  ])("%s", async (_, answer, contracts) => {
    expect((await checkOne({ answers: { eth_call: () => answer } })).contracts).toBe(contracts);
  });

  test("a chain without Multicall3", async () => {
    const answers = { eth_call: () => ({ result: "0x" }) };
    expect((await checkOne({ answers }, { withMulticall: false })).contracts).toBe("singly");
  });
});

describe("logs", () => {
  const isSearch = ({ calls }: Request): boolean => calls.some(({ method }) => method === "eth_getLogs");

  test.each([
    [Number.POSITIVE_INFINITY, "", Number.POSITIVE_INFINITY],
    [2_000, "query exceeds max block range 2000", 2_000],
    [2_000, "too much", 1_000],
    [10_000, "ranges over 10k blocks are not served", 10_000],
    [50, "no", 10],
    [5, "no", 0],
    [2_000_000, "no", 1_000_000],
  ])("a node that accepts %d blocks and responds %j: %d", async (maxBlocks, logError, logBlocks) => {
    expect((await checkOne({ maxBlocks, logError })).logBlocks).toBe(logBlocks);
  });

  test("a node that searches the whole chain too slowly gets a smaller range", async () => {
    const intercept = (request: Request) => isSearch(request) && countRequests("eth_getLogs") === 1;
    expect((await checkOne({ intercept }, { attemptTimeoutMs: 1_000 })).logBlocks).toBe(1_000_000);
  });

  test("a node that times out with a small range gets no other", async () => {
    expect((await checkOne({ intercept: isSearch }, { attemptTimeoutMs: 1_500 })).logBlocks).toBeUndefined();
    expect(countRequests("eth_getLogs")).toBe(4);
  });

  test.each([
    ["has no such method", NO_METHOD, 0],
    ["is rate limited", RATE_LIMIT, undefined],
  ])("a node that %s", async (_, answer, logBlocks) => {
    expect((await checkOne({ answers: { eth_getLogs: () => answer } })).logBlocks).toBe(logBlocks);
    expect(countRequests("eth_getLogs")).toBe(1);
  });

  test("are searched up to the head in as many blocks as the node suggests", async () => {
    const ranges: unknown[] = [];
    const intercept = (request: Request) => {
      if (isSearch(request)) ranges.push(request.calls[0]?.params[0]);
      return false;
    };
    await checkOne({ intercept, maxBlocks: 100, logError: "at most 100 blocks" });
    expect(ranges).toEqual([
      { ...filter, fromBlock: "0x0", toBlock: "latest" },
      { ...filter, fromBlock: hex(HEAD - 99), toBlock: hex(HEAD) },
    ]);
  });

  test("stay unknown like what follows when the time is over", async () => {
    const over = new AbortController();
    const intercept = (request: Request) => {
      if (isSearch(request)) over.abort();
      return isSearch(request);
    };
    const report = await checkOne({ intercept }, { signal: over.signal });
    expect(report.batch).toBe(50);
    expect(report.logBlocks).toBeUndefined();
  });
});

describe("an endpoint that throttles", () => {
  /** Answers the calls of the burst, which comes after the log searches. */
  const inBurst = (answer: (count: number) => Answer | undefined): NonNullable<Differences["answers"]> => {
    let count = 0;
    return {
      eth_blockNumber() {
        if (countRequests("eth_getLogs") === 0) return undefined;
        count += 1;
        return answer(count);
      },
    };
  };

  test("is reported with the number of calls at once that it answers", async () => {
    const answers = inBurst((count) => (count > 12 ? RATE_LIMIT : undefined));
    expect(await checkOne({ answers })).toMatchObject({
      callsAtOnce: 12,
      batch: 50,
      logBlocks: Number.POSITIVE_INFINITY,
    });
  });

  test("is not suspected when calls fail for another reason", async () => {
    const answers = inBurst(() => ({ error: { code: -32603, message: "internal error" } }));
    expect((await checkOne({ answers })).callsAtOnce).toBeUndefined();
  });
});
