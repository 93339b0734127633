import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { diagnoseEndpoints, type EndpointReport } from "../../../../src/chain/diagnose/diagnose-endpoints.js";
import { BURST_CALLS } from "../../../../src/chain/diagnose/endpoint-capabilities.js";
import { createEndpointNamer } from "../../../../src/chain/endpoints/endpoint-name.js";
import { monotonicNow } from "../../../../src/resilience/clock.js";
import { type HttpStub, readBody, sendJson, startHttpStub } from "../../../support/stubs/http-stub.js";

const chainId = 10;
const head = 5_000_000;
const multicall = "0xca11bde05977b3631167028862be2a173976ca11";
const filter = { address: [`0x${"aa".repeat(20)}`], topics: [] };
const word = (value: number): string => value.toString(16).padStart(64, "0");
/** Result of Multicall3 for one call that returns one word. */
const oneWord = `0x${[32, 1, 32, 1, 64, 32, head].map(word).join("")}`;

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly { readonly fromBlock?: string; readonly toBlock?: string }[];
}

class NodeError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** How a node differs from one with all capabilities. */
interface Node {
  readonly chainId?: number;
  readonly head?: number;
  readonly headAgeSeconds?: number;
  readonly maxCalls?: number;
  readonly maxBlocks?: number;
  readonly logError?: string;
  readonly status?: number | undefined;
  /** Runs before each response. */
  readonly before?: (method: string, params: Call["params"]) => Promise<void> | void;
  readonly call?: () => unknown;
}

const hex = (number: number): string => `0x${number.toString(16)}`;
const stubs: HttpStub[] = [];
const agents: Agent[] = [];
const requests: string[] = [];
afterEach(async () => {
  requests.length = 0;
  await Promise.all(stubs.splice(0).map((stub) => stub.close()));
});
afterAll(() => Promise.all(agents.map((agent) => agent.destroy())));

async function answer(node: Node, { method, params }: Call): Promise<unknown> {
  await node.before?.(method, params);
  const newest = node.head ?? head;
  switch (method) {
    case "eth_chainId":
      return hex(node.chainId ?? chainId);
    case "eth_blockNumber":
      return hex(newest);
    case "eth_getBlockByNumber":
      return {
        number: hex(newest),
        hash: `0x${word(1)}`,
        timestamp: hex(Math.floor(Date.now() / 1_000) - (node.headAgeSeconds ?? 2)),
      };
    case "eth_call":
      return (node.call ?? (() => oneWord))();
    case "eth_getLogs": {
      const [{ fromBlock, toBlock } = {}] = params;
      const blocks = (toBlock === "latest" ? newest : Number(toBlock)) - Number(fromBlock) + 1;
      if (blocks > (node.maxBlocks ?? Number.POSITIVE_INFINITY)) throw new NodeError(-32000, node.logError ?? "no");
      return [];
    }
    default:
      throw new NodeError(-32601, "method not found");
  }
}

async function serve(node: Node): Promise<string> {
  const one = async (call: Call) => {
    try {
      return { jsonrpc: "2.0", id: call.id, result: await answer(node, call) };
    } catch (error) {
      const { code, message } = error as NodeError;
      return { jsonrpc: "2.0", id: call.id, error: { code, message } };
    }
  };
  const stub = await startHttpStub((request, response) => {
    void (async () => {
      const body = JSON.parse(await readBody(request)) as Call | Call[];
      requests.push(
        [body]
          .flat()
          .map(({ method }) => method)
          .join(),
      );
      if (node.status !== undefined) return sendJson(response, {}, node.status);
      if (!Array.isArray(body)) return sendJson(response, await one(body));
      if (body.length <= (node.maxCalls ?? 1_000)) return sendJson(response, await Promise.all(body.map(one)));
      sendJson(response, { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batch too large" } });
    })();
  });
  stubs.push(stub);
  return stub.url;
}

async function check(
  nodes: readonly (Node | string)[],
  { attemptTimeoutMs = 30_000, signal = new AbortController().signal, withMulticall = true, now = monotonicNow } = {},
): Promise<readonly EndpointReport[]> {
  const urls = await Promise.all(nodes.map((node) => (typeof node === "string" ? node : serve(node))));
  const dispatcher = new Agent();
  agents.push(dispatcher);
  const clocks = { now, wallNow: () => Date.now() };
  const options = {
    slug: "optimism",
    urls,
    nameEndpoint: createEndpointNamer(),
    chainId,
    multicall: withMulticall ? multicall : undefined,
    filter,
    dispatcher,
    attemptTimeoutMs,
  };
  return diagnoseEndpoints({ ...options, ...clocks }, signal);
}

const one = async (node: Node, options = {}): Promise<EndpointReport> => {
  const [report] = await check([node], options);
  if (report === undefined) throw new Error("no report");
  return report;
};

describe("an endpoint with all capabilities", () => {
  test("is reported completely", async () => {
    const report = await one({});
    expect(report).toEqual({
      name: expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/),
      chainId,
      head: { number: head, ageSeconds: expect.any(Number) },
      lag: { blocks: 0, seconds: 0 },
      latencyMs: expect.any(Number),
      contracts: "together",
      batch: 50,
      callsAtOnce: 40,
      logBlocks: Number.POSITIVE_INFINITY,
    });
    expect(report.head?.ageSeconds).toBeGreaterThanOrEqual(2);
    expect(report.head?.ageSeconds).toBeLessThan(10);
  });

  test("gets few requests", async () => {
    await one({});
    expect(requests).toHaveLength(12 + BURST_CALLS);
  });

  test("has the median latency of small calls", async () => {
    let [calls, ms] = [0, 0];
    const before = (method: string): void => {
      if (method === "eth_blockNumber" && ++calls <= 3) ms += [400, 40, 60][calls - 1] ?? 0;
    };
    expect((await one({ before }, { now: () => ms })).latencyMs).toBe(60);
  });
});

describe("the chain", () => {
  test("a wrong chain id is reported, and nothing else is read", async () => {
    expect(await one({ chainId: 8453 })).toEqual({ name: expect.any(String), chainId: 8453 });
    expect(requests).toEqual(["eth_chainId"]);
  });

  test.each([
    ["an HTTP status", { status: 401 }, "answered 401: the key is not accepted"],
    [
      "an error",
      { before: () => Promise.reject(new NodeError(-32005, "who are you?")) },
      "answered JSON-RPC error -32005",
    ],
    ["silence", { before: () => sleep(3_000) }, "did not answer in time"],
  ])("reports trouble: %s", async (_, node, trouble) => {
    const options = trouble === "did not answer in time" ? { attemptTimeoutMs: 300 } : {};
    expect(await one(node, options)).toEqual({ name: expect.any(String), trouble });
  });

  test("reports a refused connection without the URL", async () => {
    const [report] = await check(["http://key:secret@127.0.0.1:1/secret"]);
    expect(report).toEqual({ name: expect.stringMatching(/^optimism\[1\]#/), trouble: "connection refused" });
  });
});

describe("heads", () => {
  test("lag behind the best one on the right chain", async () => {
    const nodes = [{ headAgeSeconds: 62, head: head - 20 }, {}, { chainId: 1, head: head * 10 }, { status: 500 }];
    const [behind, best, other] = await check(nodes);
    expect(behind?.lag?.blocks).toBe(20);
    expect(behind?.lag?.seconds).toBeGreaterThan(55);
    expect(behind?.lag?.seconds).toBeLessThan(65);
    expect(best?.lag).toEqual({ blocks: 0, seconds: 0 });
    expect(other?.lag).toBeUndefined();
  });

  test("of the future are not compared with others", async () => {
    const [good, future] = await check([{}, { headAgeSeconds: -100, head: head + 100 }]);
    expect(good?.lag).toEqual({ blocks: 0, seconds: 0 });
    expect(future?.head?.number).toBe(head + 100);
    expect(future?.lag).toBeUndefined();
  });

  test("are read together, also when one responds late", async () => {
    const late = { before: (method: string) => (method === "eth_chainId" ? sleep(300) : undefined) };
    await check([late, {}]);
    const firstHead = requests.indexOf("eth_getBlockByNumber");
    expect(requests.slice(0, firstHead).filter((method) => method === "eth_chainId")).toHaveLength(2);
    expect(requests.slice(firstHead, firstHead + 2)).toEqual(["eth_getBlockByNumber", "eth_getBlockByNumber"]);
  });

  test("of an invalid form stay unknown, like everything that needs one", async () => {
    const before = (method: string): void => {
      if (method === "eth_getBlockByNumber") throw new NodeError(-32000, "no blocks");
    };
    expect(await one({ before })).toEqual({ name: expect.any(String), chainId });
  });
});

describe("batches", () => {
  test.each([
    [1, 1],
    [3, 2],
    [10, 10],
    [49, 20],
  ])("with a limit of %i calls: %i", async (maxCalls, batch) => {
    expect((await one({ maxCalls })).batch).toBe(batch);
  });

  test("stay unknown under rate limiting", async () => {
    // Single calls succeed.
    const node: Node = {
      get status() {
        return requests.at(-1)?.includes(",") ? 429 : undefined;
      },
    };
    expect((await one(node)).batch).toBeUndefined();
  });
});

describe("contracts", () => {
  test.each([
    ["no contract code", () => "0x", "singly"],
    ["invalid results", () => `0x${word(7)}`, "none"],
    ["rejected calls", () => Promise.reject(new NodeError(-32601, "method not found")), "none"],
    ["reverts", () => Promise.reject(new NodeError(3, "execution reverted")), "none"],
    ["a rate limit", () => Promise.reject(new NodeError(-32005, "rate limit")), undefined],
  ])("%s", async (_, call, contracts) => {
    expect((await one({ call })).contracts).toBe(contracts);
  });

  test("a chain without Multicall3", async () => {
    expect((await one({ call: () => "0x" }, { withMulticall: false })).contracts).toBe("singly");
  });
});

describe("logs", () => {
  test.each([
    [Number.POSITIVE_INFINITY, "", Number.POSITIVE_INFINITY],
    [2_000, "query exceeds max block range 2000", 2_000],
    [2_000, "too much", 1_000],
    [10_000, "ranges over 10k blocks are not served", 10_000],
    [50, "no", 10],
    [5, "no", 0],
    [2_000_000, "no", 1_000_000],
  ])("a node that accepts %d blocks and responds %j: %d", async (maxBlocks, logError, logBlocks) => {
    expect((await one({ maxBlocks, logError })).logBlocks).toBe(logBlocks);
  });

  test("a node that searches the whole chain too slowly gets a smaller range", async () => {
    let searches = 0;
    const before = (method: string): Promise<void> | void => {
      if (method === "eth_getLogs" && ++searches === 1) return sleep(3_000);
    };
    expect((await one({ before }, { attemptTimeoutMs: 1_000 })).logBlocks).toBe(1_000_000);
  });

  test("a node that times out with a small range gets no other", async () => {
    const before = (method: string) => (method === "eth_getLogs" ? sleep(5_000) : undefined);
    expect((await one({ before }, { attemptTimeoutMs: 1_500 })).logBlocks).toBeUndefined();
    expect(requests.filter((method) => method === "eth_getLogs")).toHaveLength(4);
  });

  test.each([
    ["has no such method", new NodeError(-32601, "method not found"), 0],
    ["is rate limited", new NodeError(-32005, "rate limit"), undefined],
  ])("a node that %s", async (_, refusal, logBlocks) => {
    const before = (method: string): void => {
      if (method === "eth_getLogs") throw refusal;
    };
    const report = await one({ before });
    expect(report.logBlocks).toBe(logBlocks);
    expect(requests.filter((method) => method === "eth_getLogs")).toHaveLength(1);
  });

  test("are searched up to the head in as many blocks as the node suggests", async () => {
    const ranges: unknown[] = [];
    const before = (method: string, [first]: Call["params"]): void => {
      if (method === "eth_getLogs") ranges.push(first);
    };
    await one({ before, maxBlocks: 100, logError: "at most 100 blocks" });
    expect(ranges).toEqual([
      { ...filter, fromBlock: "0x0", toBlock: "latest" },
      { ...filter, fromBlock: hex(head - 99), toBlock: hex(head) },
    ]);
  });
});

describe("a timeout", () => {
  test("leaves the remaining fields unknown", async () => {
    const over = new AbortController();
    const before = (method: string): Promise<void> | void => {
      if (method !== "eth_getLogs") return;
      over.abort();
      return sleep(500);
    };
    const report = await one({ before }, { signal: over.signal });
    expect(report.batch).toBe(50);
    expect(report.logBlocks).toBeUndefined();
  });
});

describe("an endpoint that throttles", () => {
  test("is reported with the number of calls at once that it answers", async () => {
    let hasSearched = false;
    let calls = 0;
    const before = (method: string): void => {
      // The burst comes last, after the log searches.
      if (method === "eth_getLogs") hasSearched = true;
      else if (hasSearched && ++calls > 12) throw new NodeError(-32005, "rate limit exceeded");
    };
    expect(await one({ before })).toMatchObject({ callsAtOnce: 12, batch: 50, logBlocks: Number.POSITIVE_INFINITY });
    expect(calls).toBe(40);
  });

  test("is not suspected when calls fail for another reason", async () => {
    let hasSearched = false;
    const before = (method: string): void => {
      if (method === "eth_getLogs") hasSearched = true;
      else if (hasSearched) throw new NodeError(-32603, "internal error");
    };
    expect((await one({ before })).callsAtOnce).toBeUndefined();
  });
});
