import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, test } from "vitest";
import { ChainClients } from "../../../../src/chain/chains.js";
import { BlockAgeMonitor } from "../../../../src/chain/heads/block-age-monitor.js";
import { ChainClock } from "../../../../src/chain/heads/chain-clock.js";
import { HeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { ServiceError } from "../../../../src/errors.js";
import { monotonicNow } from "../../../../src/resilience/clock.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { createHeader as head } from "../support/log-chain-stub.js";
import {
  answerStatus,
  type createPoolOn,
  disconnect,
  down,
  hang,
  healthy,
  never,
  type RpcNodeStub,
  returning,
  startPool,
  startRpcNodeStub,
  until,
} from "../support/rpc-node-stub.js";

const NOW = Math.floor(Date.now() / 1000);
const OLD = NOW - 600;
const BLOCK_AGE_LIMITS = { mainnet: new Map([["optimism", { maxBlockAgeMs: 120_000, blockTimeMs: 2_000 }]]) };

const countHeadReads = (nodes: readonly RpcNodeStub[]): number[] => nodes.map(({ headRequests }) => headRequests);

/** Reads the heads of all endpoints, as probes do, and waits for the states that they lead to. */
async function probe({ pool, clock, states }: ReturnType<typeof createPoolOn>, ...expected: string[]): Promise<void> {
  clock.ms += 10_000;
  pool.refreshHeads();
  await until(() => expect(states()).toEqual(expected));
}

/** Starts endpoints that return 0xa and 0xb. */
const startPair = (first: unknown, second: unknown) =>
  startPool([
    { ...returning("0xa"), head: first },
    { ...returning("0xb"), head: second },
  ]);

/** Starts endpoints whose blocks may be two minutes old. */
async function startLimitedPool(behaviours: readonly Partial<RpcNodeStub>[]) {
  const clock = { ms: 1_000_000 };
  const startMs = Date.now() - clock.ms;
  const clocks = { now: () => startMs + clock.ms, monotonicNow: () => clock.ms };
  const heads = new BlockAgeMonitor({ limits: BLOCK_AGE_LIMITS, clocks }).getHeadTracker("mainnet", "optimism");
  return { ...(await startPool(behaviours, { heads, now: () => clock.ms })), heads, clock };
}

describe("the state of an endpoint", () => {
  test("is unknown before the first request, then follows the probe", async () => {
    const created = await startPool([{ head: head(7, NOW) }]);
    const { pool, clock } = created;
    expect(pool.state()).toEqual({
      head: undefined,
      endpoints: [
        { endpoint: expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/), state: "unknown", head: undefined },
      ],
      isStalled: false,
      isChecked: false,
    });
    await probe(created, "ok");
    const seen = { number: 7, timestamp: NOW, observedAt: clock.ms };
    expect(pool.state()).toMatchObject({ head: seen, endpoints: [{ head: seen }] });
  });

  test("is failing after a failed probe or read, and ok after the next success", async () => {
    const created = await startPool([{ head: head(7, NOW) }]);
    const { send, states, nodes } = created;
    const [node] = nodes;
    await probe(created, "ok");
    node.intercept = down;
    await probe(created, "failing");
    node.intercept = healthy;
    await probe(created, "ok");
    node.intercept = down;
    await expect(send()).rejects.toThrow();
    expect(states()).toEqual(["failing"]);
    node.intercept = healthy;
    await send();
    expect(states()).toEqual(["ok"]);
  });

  test("is failing while its breaker is open, whatever its head", async () => {
    const { nodes, send, clock, pool, states } = await startPool([
      { head: head(7, NOW), intercept: down },
      { head: head(7, NOW) },
    ]);
    for (let round = 0; round < 5; round++) await send();
    const [first] = nodes;
    first.intercept = healthy;
    const reads = first.headRequests;
    clock.ms += 10_000;
    pool.refreshHeads();
    await until(() => expect(first.headRequests).toBe(reads + 1));
    await sleep(30);
    expect(states()).toEqual(["failing", "ok"]);
    clock.ms += 30_000;
    expect(states()).toEqual(["ok", "ok"]);
  });

  test("is cooldown while the endpoint asks for it", async () => {
    const { nodes, send, clock, pool, states } = await startPool([
      { intercept: answerStatus(429, { "retry-after": "20" }) },
      { head: head(7, NOW) },
    ]);
    await send();
    expect(states()).toEqual(["cooldown", "ok"]);
    const [first = 0, second = 0] = countHeadReads(nodes);
    clock.ms += 10_000;
    pool.refreshHeads();
    await until(() => expect(countHeadReads(nodes)).toEqual([first, second + 1]));
    clock.ms += 10_001;
    expect(states()).toEqual(["failing", "ok"]);
  });

  test("is unaffected by a probe that shutdown aborts", async () => {
    const closing = new AbortController();
    const { nodes, pool, states } = await startPool([{ intercept: hang }], { closing: closing.signal });
    pool.refreshHeads();
    await until(() => expect(countHeadReads(nodes)).toEqual([1]));
    closing.abort();
    await sleep(30);
    expect(states()).toEqual(["unknown"]);
  });

  test("stays ok when a hedge overtakes the endpoint", async () => {
    const created = await startPair(head(7, NOW), head(7, NOW));
    const { nodes, hedges, send, states } = created;
    const [slow, quick] = nodes;
    await probe(created, "ok", "ok");
    slow.intercept = hang;
    quick.ready = until(() => expect(slow.requests).toHaveLength(1));
    hedges.areDue = true;
    await send();
    expect(slow.requests).toHaveLength(1);
    expect(states()).toEqual(["ok", "ok"]);
  });
});

describe("an endpoint behind its peers", () => {
  test.each([
    ["16 blocks is passed over", head(84, 1000), true],
    ["15 blocks is not", head(85, 1000), false],
    ["30 seconds is passed over", head(100, 970), true],
    ["29 seconds is not", head(100, 971), false],
    ["no blocks is not", head(100, 1000), false],
  ])("by %s", async (_, behind, isPassedOver) => {
    const pair = await startPair(behind, head(100, 1000));
    await probe(pair, isPassedOver ? "lagging" : "ok", "ok");
    expect(pair.pool.state().head).toMatchObject({ number: 100 });
    expect(await pair.send()).toBe(isPassedOver ? "0xb" : "0xa");
  });

  test("is used again when it has caught up", async () => {
    const pair = await startPair(head(1, 1), head(100, 1000));
    await probe(pair, "lagging", "ok");
    pair.nodes[0].head = head(200, 2000);
    await probe(pair, "ok", "lagging");
    expect(await pair.send()).toBe("0xa");
  });

  test("is used when its peers fail, but not before", async () => {
    const pair = await startPair(head(1, 1), head(100, 1000));
    await probe(pair, "lagging", "ok");
    expect(await pair.send()).toBe("0xb");
    pair.nodes[1].intercept = down;
    expect(await pair.send()).toBe("0xa");
  });

  test("is not measured against the last head of a peer that has been silent since", async () => {
    const pair = await startPair(head(100, 1000), head(9_000, 1000));
    const [honest, gone] = pair.nodes;
    await probe(pair, "lagging", "ok");
    gone.intercept = down;
    honest.head = head(105, 1010);
    await probe(pair, "ok", "failing");
    const asked = gone.requests.length;
    expect(await pair.send()).toBe("0xa");
    expect(gone.requests.length).toBe(asked);
  });

  test.each([
    ["that is far in the future", head(100, NOW + 120), "ok"],
    ["that is an error", undefined, "failing"],
    ["that is no block", null, "failing"],
    ["without a number", { number: 7, timestamp: "0x1" }, "failing"],
    ["without a time", { number: "0x1", timestamp: "soon" }, "failing"],
  ])("is not measured against a head %s", async (_, said, state) => {
    const pair = await startPair(head(1, 1), said);
    await probe(pair, "ok", state);
    expect(await pair.send()).toBe("0xa");
    expect(pair.failures).toEqual([]);
  });
});

describe("endpoints of different latency", () => {
  /** Returns whether each is behind. Both are asked at the same time; the second one reports later. */
  function compare(quick: [number, number], slow: [number, number], latencyMs: number): readonly boolean[] {
    const clock = { ms: 0 };
    const heads = new HeadTracker(new ChainClock({ now: Date.now, monotonicNow: () => clock.ms }));
    heads.record("quick", { number: quick[0], timestamp: quick[1] }, 0);
    clock.ms = latencyMs;
    heads.record("slow", { number: slow[0], timestamp: slow[1] }, 0);
    return ["quick", "slow"].map((name) => heads.isLagging(name));
  }

  test("are not behind by the blocks that the chain produces while the slower one responds", () => {
    // Four blocks per second, as on Arbitrum; the second endpoint takes four seconds.
    expect(compare([1_000, 500], [1_016, 504], 4_050)).toEqual([false, false]);
  });

  test("are behind by more than that", () => {
    expect(compare([980, 495], [1_016, 504], 4_050)).toEqual([true, false]);
    expect(compare([1_016, 504], [1_000, 500], 4_050)).toEqual([false, true]);
  });
});

describe("the heads of the endpoints", () => {
  test("are read beside reads, at most every ten seconds", async () => {
    const { nodes, send, clock } = await startPair(head(1, 1), head(1, 1));
    for (let round = 0; round < 5; round++) await send();
    await until(() => expect(countHeadReads(nodes)).toEqual([1, 1]));
    clock.ms += 9_999;
    await send();
    await sleep(20);
    expect(countHeadReads(nodes)).toEqual([1, 1]);
    clock.ms += 1;
    await send();
    await until(() => expect(countHeadReads(nodes)).toEqual([2, 2]));
  });

  test("are not read beside reads of a single endpoint, but by probes", async () => {
    const { nodes, send, pool } = await startPool([{ head: head(7, NOW) }]);
    await send();
    await sleep(20);
    expect(countHeadReads(nodes)).toEqual([0]);
    for (let round = 0; round < 50; round++) pool.refreshHeads();
    await until(() => expect(countHeadReads(nodes)).toEqual([1]));
  });

  test("are not waited for, and not read again while an endpoint has not answered", async () => {
    const created = await startPool([{ head: head(1, 1) }, { intercept: hang }]);
    const { nodes, clock, send } = created;
    await probe(created, "ok", "unknown");
    for (let round = 0; round < 50; round++) {
      clock.ms += 10_000;
      expect(await send()).toBe("0x1");
    }
    expect(countHeadReads(nodes)).toEqual([1, 1]);
  });

  test("are not waited for when the pool closes", async () => {
    const closing = new AbortController();
    const dispatcher = new Agent();
    const { nodes, send } = await startPool([{}, { intercept: hang }], { closing: closing.signal, dispatcher });
    await send();
    await until(() => expect(nodes[1].headRequests).toBe(1));
    closing.abort();
    await until(() => expect(nodes[1].abortedRequests).toBe(1));
    await dispatcher.destroy();
  });

  test("start a cooldown that an endpoint asks for", async () => {
    const busy = answerStatus(429, { "retry-after": "9" });
    const { states, send } = await startPool([
      {
        intercept: (request) => request.calls.some(({ method }) => method === "eth_getBlockByNumber") && busy(request),
      },
      returning("0xb"),
    ]);
    await send();
    await until(() => expect(states()[0]).toBe("cooldown"));
    expect(await send()).toBe("0xb");
  });

  test("are checked once the last endpoint has responded or failed", async () => {
    const pending: (() => void)[] = [];
    const { pool, states } = await startPool([
      { head: head(7, NOW) },
      { intercept: ({ response }) => pending.push(() => response.writeHead(500).end()) > 0 },
    ]);
    pool.refreshHeads();
    await until(() => expect([states()[0], pending.length]).toEqual(["ok", 1]));
    expect(pool.state().isChecked).toBe(false);
    pending[0]?.();
    await until(() => expect(pool.state().isChecked).toBe(true));
  });

  test("do not count as use of the chain when they are read", async () => {
    const { pool, send, clock } = await startPool([{ head: head(7, NOW) }]);
    pool.refreshHeads();
    expect(pool.state().lastUsedAt).toBeUndefined();
    await send();
    expect(pool.state().lastUsedAt).toBe(clock.ms);
  });

  test("are read every one and a half seconds at most while the chain is stalled and is asked", async () => {
    const { nodes, clock, send, heads } = await startLimitedPool([{ head: head(7, OLD) }, { head: head(7, OLD) }]);
    heads.record("state", { number: 7, timestamp: OLD }, clock.ms);
    for (let reads = 1; reads <= 6; reads += 1) {
      clock.ms += 1_500;
      await Promise.all([send(), send(), send()]);
      await until(() => expect(countHeadReads(nodes)).toEqual([reads, reads]));
      await until(() => expect(heads.getNewest()?.readAt).toBe(clock.ms));
      clock.ms += 1_000;
      await send();
    }
    expect(countHeadReads(nodes)).toEqual([6, 6]);
  });

  test("are read of a single endpoint only if nothing else has read a block for a while", async () => {
    const { nodes, clock, send, heads } = await startLimitedPool([{ head: head(7, NOW) }]);
    heads.record("state", { number: 7, timestamp: NOW }, clock.ms);
    clock.ms += 30_000;
    await send();
    expect(countHeadReads(nodes)).toEqual([0]);
    clock.ms += 1;
    await send();
    await until(() => expect(heads.getNewest()?.readAt).toBe(clock.ms));
  });
});

describe("a head that something else has read", () => {
  test("counts unless it is from the future", async () => {
    const { pool, clock } = await startPool([{}]);
    pool.recordHead({ number: 9, timestamp: NOW }, clock.ms);
    expect(pool.state().head).toMatchObject({ number: 9, timestamp: NOW, observedAt: clock.ms });
    pool.recordHead({ number: 99, timestamp: NOW + 3_600 }, clock.ms);
    expect(pool.state().head).toBeUndefined();
  });

  test.each([
    ["failing", null],
    ["lagging", head(7, NOW)],
  ])("has those of the endpoints read again while one is %s", async (state, firstHead) => {
    const pair = await startPair(firstHead, head(99, NOW));
    const { pool, clock, states, nodes } = pair;
    await probe(pair, state, "ok");
    nodes[0].head = head(99, NOW);
    clock.ms += 10_000;
    // Another process reads the chain: there is no request here.
    pool.recordHead({ number: 99, timestamp: NOW }, clock.ms);
    await until(() => expect(states()).toEqual(["ok", "ok"]));
    const reads = countHeadReads(nodes);
    clock.ms += 10_000;
    pool.recordHead({ number: 100, timestamp: NOW }, clock.ms);
    await sleep(50);
    expect(countHeadReads(nodes)).toEqual(reads);
  });
});

describe("an endpoint whose newest block is too old", () => {
  test.each([
    ["is used last and counts as lagging, also without a peer that says so", undefined, 1, "0xb"],
    ["is used in its place when all are", head(7, OLD), 2, "0xa"],
  ])("%s", async (_, otherHead, laggingCount, expected) => {
    const { states, clock, send } = await startLimitedPool([
      { ...returning("0xa"), head: head(7, OLD) },
      { ...returning("0xb"), head: otherHead },
    ]);
    clock.ms += 10_000;
    await send();
    await until(() => expect(states().filter((state) => state === "lagging")).toHaveLength(laggingCount));
    expect(states()[0]).toBe("lagging");
    expect(await send()).toBe(expected);
  });
});

describe("a read whose result shows that its endpoint is stalled", () => {
  const OLD_RESULT = { result: `0x${OLD.toString(16)}` };
  const YOUNG_RESULT = { result: `0x${NOW.toString(16)}` };
  const [old, young] = [returning(OLD_RESULT.result), returning(YOUNG_RESULT.result)];

  /** Each result tells the head of its endpoint. */
  async function startReaders(nodes: readonly Partial<RpcNodeStub>[], onRequest = () => {}) {
    const { client, hedges, nodes: started } = await startLimitedPool(nodes);
    const parseHead = (timestamp: unknown) => ({ number: 7, timestamp: Number(timestamp) });
    const call = { method: "eth_call", params: [], parseHead, onRequest };
    return {
      hedges,
      read: async () => (await client.sendBatch([call], never))[0],
      countReads: () => started.map(({ requests }) => requests.length),
    };
  }

  test("is made by the next endpoint", async () => {
    const { read, countReads } = await startReaders([old, young]);
    expect(await read()).toEqual(YOUNG_RESULT);
    expect(await read()).toEqual(YOUNG_RESULT);
    expect(countReads()).toEqual([1, 2]);
  });

  test("counts where all endpoints are stalled, and is not repeated at those that are known to be", async () => {
    const { read, countReads } = await startReaders([old, old]);
    expect(await read()).toEqual(OLD_RESULT);
    expect(await read()).toEqual(OLD_RESULT);
    expect(countReads()).toEqual([2, 1]);
  });

  test("counts where the next endpoint is dead", async () => {
    const { read } = await startReaders([old, { ...young, intercept: disconnect }]);
    expect(await read()).toEqual(OLD_RESULT);
  });

  test("counts where the next endpoint takes longer than usual", async () => {
    const { read, hedges } = await startReaders([old, { ...young, intercept: hang }]);
    hedges.isPatienceOver = true;
    expect(await read()).toEqual(OLD_RESULT);
  });

  test("counts where the next endpoint may not be asked", async () => {
    let requests = 0;
    const { read, countReads } = await startReaders([old, young], () => {
      requests += 1;
      if (requests > 1) throw new ServiceError("OVERLOADED", "no more requests");
    });
    expect(await read()).toEqual(OLD_RESULT);
    expect(countReads()).toEqual([1, 0]);
  });
});

test("a caller's endpoint tells nothing about the clock or the age of a chain", async () => {
  const node = await startRpcNodeStub({ head: head(7, OLD) });
  const blockAges = new BlockAgeMonitor({ limits: BLOCK_AGE_LIMITS, clocks: { now: Date.now, monotonicNow } });
  const networks = { mainnet: new Map([["optimism", { chainId: 1, urls: ["http://127.0.0.1:1"] }]]) };
  const chains = closeAfterTest(new ChainClients({ networks, blockAges, customUrlPolicy: "any", onFailure: () => {} }));
  const block = await chains.withCustomEndpoints(
    "mainnet",
    new Map([["optimism", node.url]]),
    (access) => access.getClient("optimism").send("eth_getBlockByNumber", ["latest", false], never),
    { caller: "192.0.2.7", signal: never },
  );
  expect(block).toEqual(node.head);
  expect(blockAges.getHeadTracker("mainnet", "optimism").getNewest()).toBeUndefined();
});
