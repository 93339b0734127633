import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import { ChainClock } from "../../../../src/chain/heads/chain-clock.js";
import { HeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const head = (number: number, timestamp: number) => ({
  number: `0x${number.toString(16)}`,
  timestamp: `0x${timestamp.toString(16)}`,
});
const result = (value: string) => ({ respond: () => ({ result: value }) });

/** Refreshes the heads of all endpoints, some of which report a valid one. */
async function refreshHeads({ pool, clock, send }: ReturnType<typeof createPoolOn>, validHeads = 1): Promise<void> {
  clock.ms += 10_000;
  await send();
  const countHeads = (): number =>
    pool.state().endpoints.filter((endpoint) => endpoint.head?.observedAt === clock.ms).length;
  await vi.waitFor(() => expect(countHeads()).toBe(validHeads), { timeout: 60_000 });
}

/** Starts two endpoints that answer 0xa and 0xb, and reads their heads. */
async function startPair(first: unknown, second: unknown, validHeads = 2) {
  const nodes = [
    await startRpcNodeStub({ ...result("0xa"), head: first }),
    await startRpcNodeStub({ ...result("0xb"), head: second }),
  ] as const;
  const pool = createPoolOn(nodes);
  await refreshHeads(pool, validHeads);
  return { nodes, pool };
}

describe("an endpoint behind its peers", () => {
  test.each([
    ["16 blocks", head(84, 1000), true],
    ["15 blocks", head(85, 1000), false],
    ["30 seconds", head(100, 970), true],
    ["29 seconds", head(100, 971), false],
    ["no blocks", head(100, 1000), false],
  ])("by %s", async (_, behind, isPassedOver) => {
    const { pool } = await startPair(behind, head(100, 1000));
    expect(await pool.send()).toBe(isPassedOver ? "0xb" : "0xa");
  });

  test("is used again when it has caught up", async () => {
    const { nodes, pool } = await startPair(head(1, 1), head(100, 1000));
    expect(await pool.send()).toBe("0xb");
    nodes[0].head = head(200, 2000);
    await refreshHeads(pool, 2);
    expect(await pool.send()).toBe("0xa");
  });

  test("is used when its peers fail, but not before", async () => {
    const { nodes, pool } = await startPair(head(1, 1), head(100, 1000));
    expect(await pool.send()).toBe("0xb");
    nodes[1].intercept = ({ response }) => Boolean(response.writeHead(500).end());
    expect(await pool.send()).toBe("0xa");
  });

  test("is not measured against the last head of a peer that has been silent since", async () => {
    const { nodes, pool } = await startPair(head(100, 1000), head(9_000, 1000));
    const [honest, gone] = nodes;
    expect(await pool.send()).toBe("0xb");
    gone.intercept = ({ response }) => Boolean(response.writeHead(500).end());
    honest.head = head(105, 1010);
    await refreshHeads(pool);
    await vi.waitFor(() => expect(pool.pool.state().endpoints.map(({ state }) => state)).toEqual(["ok", "failing"]), {
      timeout: 60_000,
    });
    const asked = gone.requests.length;
    expect(await pool.send()).toBe("0xa");
    expect(gone.requests.length).toBe(asked);
  });

  test("is not measured against a head that is far in the future", async () => {
    const { pool } = await startPair(head(1, 1), head(100, Math.floor(Date.now() / 1000) + 120));
    expect(await pool.send()).toBe("0xa");
  });

  test.each([
    ["nothing", undefined],
    ["no block", null],
    ["no number", { number: 7, timestamp: "0x1" }],
    ["no time", { number: "0x1", timestamp: "soon" }],
  ])("is not measured against a head with %s", async (_, said) => {
    const { pool } = await startPair(head(1, 1), said, 1);
    expect(await pool.send()).toBe("0xa");
    expect(pool.failures).toEqual([]);
  });
});

describe("head refresh", () => {
  test("runs beside reads, at most every ten seconds", async () => {
    const nodes = [await startRpcNodeStub({ head: head(1, 1) }), await startRpcNodeStub({ head: head(1, 1) })];
    const { pool, send, clock } = createPoolOn(nodes);
    for (let round = 0; round < 5; round++) await send();
    const heads = () => pool.state().endpoints.map((endpoint) => endpoint.head?.number);
    await vi.waitFor(() => expect(heads()).toEqual([1, 1]), { timeout: 60_000 });
    clock.ms += 9_999;
    await send();
    await sleep(20);
    expect(nodes.map(({ headRequests }) => headRequests)).toEqual([1, 1]);
    clock.ms += 1;
    await send();
    await vi.waitFor(() => expect(nodes.map(({ headRequests }) => headRequests)).toEqual([2, 2]), { timeout: 60_000 });
  });

  test("blocks no read, and is not repeated while an endpoint has not answered", async () => {
    const nodes = [await startRpcNodeStub({ head: head(1, 1) }), await startRpcNodeStub()];
    const [first, second] = nodes as [RpcNodeStub, RpcNodeStub];
    const pool = createPoolOn(nodes);
    second.intercept = () => true;
    await refreshHeads(pool);
    for (let round = 0; round < 50; round++) {
      pool.clock.ms += 10_000;
      expect(await pool.send()).toBe("0x1");
    }
    expect([first.headRequests, second.headRequests]).toEqual([1, 1]);
  });

  test("does not run for a single endpoint", async () => {
    const node = await startRpcNodeStub();
    await createPoolOn([node]).send();
    await sleep(20);
    expect(node.headRequests).toBe(0);
  });

  test("ends when the pool closes", async () => {
    const closing = new AbortController();
    const dispatcher = new Agent();
    const nodes = [await startRpcNodeStub(), await startRpcNodeStub()];
    const [, second] = nodes as [RpcNodeStub, RpcNodeStub];
    second.intercept = () => true;
    await createPoolOn(nodes, { closing: closing.signal, dispatcher }).send();
    await vi.waitFor(() => expect(second.headRequests).toBe(1), { timeout: 60_000 });
    closing.abort();
    await vi.waitFor(() => expect(second.abortedRequests).toBe(1), { timeout: 60_000 });
    await dispatcher.destroy();
  });

  test("starts a cooldown that an endpoint asks for", async () => {
    const nodes = [await startRpcNodeStub(), await startRpcNodeStub(result("0xb"))];
    const [first] = nodes as [RpcNodeStub, RpcNodeStub];
    first.intercept = ({ calls, response }) => {
      const looks = calls.some(({ method }) => method === "eth_getBlockByNumber");
      if (looks) response.writeHead(429, { "retry-after": "9" }).end();
      return looks;
    };
    const { pool, send } = createPoolOn(nodes);
    await send();
    await vi.waitFor(() => expect(pool.state().endpoints[0]?.state).toBe("cooldown"), { timeout: 60_000 });
    expect(await send()).toBe("0xb");
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
