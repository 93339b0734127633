import { describe, expect, test, vi } from "vitest";
import { ChainClients } from "../../../../src/chain/chains.js";
import { BlockAgeMonitor } from "../../../../src/chain/heads/block-age-monitor.js";
import { ServiceError } from "../../../../src/errors.js";
import { monotonicNow } from "../../../../src/resilience/clock.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const nowSeconds = Math.floor(Date.now() / 1000);
const YOUNG = nowSeconds;
const OLD = nowSeconds - 600;
const head = (number: number, timestamp: number) => ({
  number: `0x${number.toString(16)}`,
  timestamp: `0x${timestamp.toString(16)}`,
});
const result = (value: string) => ({ respond: () => ({ result: value }) });

/** A pool whose blocks may be two minutes old. */
function createLimitedPool(nodes: readonly RpcNodeStub[]) {
  const clock = { ms: 1_000_000 };
  const limits = { mainnet: new Map([["optimism", { maxBlockAgeMs: 120_000, blockTimeMs: 2_000 }]]) };
  const startMs = Date.now() - clock.ms;
  const clocks = { now: () => startMs + clock.ms, monotonicNow: () => clock.ms };
  const heads = new BlockAgeMonitor({ limits, clocks }).getHeadTracker("mainnet", "optimism");
  return { ...createPoolOn(nodes, { heads, now: () => clock.ms }), heads, clock };
}

const countHeadReads = (nodes: readonly RpcNodeStub[]) => nodes.reduce((sum, node) => sum + node.headRequests, 0);

describe("an endpoint whose newest block is too old", () => {
  test("is used last and counts as lagging, also without a peer that says so", async () => {
    const nodes = [
      await startRpcNodeStub({ ...result("0xa"), head: head(7, OLD) }),
      await startRpcNodeStub({ ...result("0xb"), head: undefined }),
    ];
    const { pool, clock, send } = createLimitedPool(nodes);
    clock.ms += 10_000;
    await send();
    await vi.waitFor(() => expect(pool.state().endpoints[0]?.state).toBe("lagging"), { timeout: 60_000 });
    expect(await send()).toBe("0xb");
  });

  test("is used in its place when all are", async () => {
    const nodes = [
      await startRpcNodeStub({ ...result("0xa"), head: head(7, OLD) }),
      await startRpcNodeStub({ ...result("0xb"), head: head(7, OLD) }),
    ];
    const { pool, clock, send } = createLimitedPool(nodes);
    clock.ms += 10_000;
    await send();
    const states = () => pool.state().endpoints.map(({ state }) => state);
    await vi.waitFor(() => expect(states()).toEqual(["lagging", "lagging"]), { timeout: 60_000 });
    expect(await send()).toBe("0xa");
  });
});

describe("a read whose result shows that its endpoint is stalled", () => {
  /** Each result tells the head of its endpoint. */
  async function startReaders(
    nodes: readonly { readonly timestamp: number; readonly isDead?: boolean; readonly hangs?: boolean }[],
    onRequest = () => {},
  ) {
    const started = await Promise.all(
      nodes.map(({ timestamp, isDead = false, hangs = false }) =>
        startRpcNodeStub({
          ...result(`0x${timestamp.toString(16)}`),
          intercept: ({ response }) => hangs || (isDead && Boolean(response.destroy())),
        }),
      ),
    );
    const { client, hedges } = createLimitedPool(started);
    const parseHead = (timestamp: unknown) => ({ number: 7, timestamp: Number(timestamp) });
    const call = { method: "eth_call", params: [], parseHead, onRequest };
    return {
      hedges,
      read: async () => (await client.sendBatch([call], new AbortController().signal))[0],
      countReads: () => started.map(({ requests }) => requests.length),
    };
  }
  const read = (timestamp: number) => ({ result: `0x${timestamp.toString(16)}` });

  test("is made by the next endpoint", async () => {
    const { read: readAgain, countReads } = await startReaders([{ timestamp: OLD }, { timestamp: YOUNG }]);
    expect(await readAgain()).toEqual(read(YOUNG));
    expect(await readAgain()).toEqual(read(YOUNG));
    expect(countReads()).toEqual([1, 2]);
  });

  test("counts where all endpoints are stalled, and is not repeated at those that are known to be", async () => {
    const { read: readAgain, countReads } = await startReaders([{ timestamp: OLD }, { timestamp: OLD }]);
    expect(await readAgain()).toEqual(read(OLD));
    expect(await readAgain()).toEqual(read(OLD));
    expect(countReads()).toEqual([2, 1]);
  });

  test("counts where the next endpoint is dead", async () => {
    const { read: readAgain } = await startReaders([{ timestamp: OLD }, { timestamp: YOUNG, isDead: true }]);
    expect(await readAgain()).toEqual(read(OLD));
  });

  test("counts where the next endpoint takes longer than usual", async () => {
    const { read: readAgain, hedges } = await startReaders([{ timestamp: OLD }, { timestamp: YOUNG, hangs: true }]);
    hedges.isPatienceOver = true;
    expect(await readAgain()).toEqual(read(OLD));
  });

  test("counts where the next endpoint may not be asked", async () => {
    let requests = 0;
    const { read: readAgain, countReads } = await startReaders([{ timestamp: OLD }, { timestamp: YOUNG }], () => {
      requests += 1;
      if (requests > 1) throw new ServiceError("OVERLOADED", "no more requests");
    });
    expect(await readAgain()).toEqual(read(OLD));
    expect(countReads()).toEqual([1, 0]);
  });
});

describe("the heads of the endpoints", () => {
  test("are read every one and a half seconds at most while the chain is stalled and is asked", async () => {
    const nodes = [await startRpcNodeStub({ head: head(7, OLD) }), await startRpcNodeStub({ head: head(7, OLD) })];
    const { clock, send, heads } = createLimitedPool(nodes);
    heads.record("state", { number: 7, timestamp: OLD }, clock.ms);
    for (let second = 0; second < 6; second += 1) {
      clock.ms += 1_500;
      await Promise.all([send(), send(), send()]);
      await vi.waitFor(() => expect(countHeadReads(nodes)).toBe(2 * (second + 1)), { timeout: 60_000 });
      await vi.waitFor(() => expect(heads.getNewest()?.readAt).toBe(clock.ms), { timeout: 60_000 });
      clock.ms += 1_000;
      await send();
    }
    expect(countHeadReads(nodes)).toBe(12);
  });

  test("are read of a single endpoint only if nothing else has read a block for a while", async () => {
    const nodes = [await startRpcNodeStub({ head: head(7, YOUNG) })];
    const { clock, send, heads } = createLimitedPool(nodes);
    heads.record("state", { number: 7, timestamp: YOUNG }, clock.ms);
    clock.ms += 30_000;
    await send();
    expect(countHeadReads(nodes)).toBe(0);
    clock.ms += 1;
    await send();
    await vi.waitFor(() => expect(heads.getNewest()?.readAt).toBe(clock.ms), { timeout: 60_000 });
  });
});

test("a caller's endpoint tells nothing about the clock or the age of a chain", async () => {
  const node = await startRpcNodeStub({ head: head(7, OLD) });
  const limits = { mainnet: new Map([["optimism", { maxBlockAgeMs: 120_000, blockTimeMs: 2_000 }]]) };
  const blockAges = new BlockAgeMonitor({ limits, clocks: { now: Date.now, monotonicNow } });
  const networks = { mainnet: new Map([["optimism", { chainId: 1, urls: ["http://127.0.0.1:1"] }]]) };
  const chains = new ChainClients({ networks, blockAges, customUrlPolicy: "any", onFailure: () => {} });
  closeAfterTest(chains);
  const { signal } = new AbortController();
  const block = await chains.withCustomEndpoints(
    "mainnet",
    new Map([["optimism", node.url]]),
    (access) => access.getClient("optimism").send("eth_getBlockByNumber", ["latest", false], signal),
    { caller: "192.0.2.7", signal },
  );
  expect(block).toEqual(node.head);
  expect(blockAges.getHeadTracker("mainnet", "optimism").getNewest()).toBeUndefined();
});
