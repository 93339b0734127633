import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const nowSeconds = Math.floor(Date.now() / 1000);
const head = (number: number) => ({ number: `0x${number.toString(16)}`, timestamp: `0x${nowSeconds.toString(16)}` });
const down: RpcNodeStub["intercept"] = ({ response }) => Boolean(response.writeHead(500).end());
const up: RpcNodeStub["intercept"] = () => false;

/** Creates a pool whose states are read as by probes. */
function createProbedPool(nodes: readonly RpcNodeStub[], closing = new AbortController()) {
  const created = createPoolOn(nodes, { closing: closing.signal });
  return { ...created, states: () => created.pool.state().endpoints.map(({ state }) => state) };
}

async function probeAgain(
  { pool, clock, states }: ReturnType<typeof createProbedPool>,
  expected: readonly string[],
): Promise<void> {
  clock.ms += 10_000;
  pool.refreshHeads();
  await vi.waitFor(() => expect(states()).toEqual(expected), { timeout: 60_000 });
}

describe("the state of an endpoint", () => {
  test("is unknown before the first request, then follows the probe", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const probed = createProbedPool([node]);
    expect(probed.pool.state()).toEqual({
      head: undefined,
      endpoints: [
        { endpoint: expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/), state: "unknown", head: undefined },
      ],
      isStalled: false,
      isChecked: false,
      usedAt: undefined,
    });
    await probeAgain(probed, ["ok"]);
    const seen = { number: 7, timestamp: nowSeconds, observedAt: probed.clock.ms };
    expect(probed.pool.state()).toMatchObject({ head: seen, endpoints: [{ head: seen }] });
  });

  test("is failing after a failed probe or read, and ok after the next success", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const probed = createProbedPool([node]);
    await probeAgain(probed, ["ok"]);
    node.intercept = down;
    await probeAgain(probed, ["failing"]);
    node.intercept = up;
    await probeAgain(probed, ["ok"]);
    node.intercept = down;
    await expect(probed.send()).rejects.toThrow();
    expect(probed.states()).toEqual(["failing"]);
    node.intercept = up;
    await probed.send();
    expect(probed.states()).toEqual(["ok"]);
  });

  test("is failing while its breaker is open, whatever its head", async () => {
    const [first, second] = [
      await startRpcNodeStub({ head: head(7), intercept: down }),
      await startRpcNodeStub({ head: head(7) }),
    ];
    const probed = createProbedPool([first, second]);
    for (let round = 0; round < 5; round++) await probed.send();
    first.intercept = up;
    const looks = first.headRequests;
    probed.clock.ms += 10_000;
    probed.pool.refreshHeads();
    await vi.waitFor(() => expect(first.headRequests).toBe(looks + 1), { timeout: 60_000 });
    await sleep(30);
    expect(probed.states()).toEqual(["failing", "ok"]);
    probed.clock.ms += 30_000;
    expect(probed.states()).toEqual(["ok", "ok"]);
  });

  test("is cooldown while the endpoint asks for it", async () => {
    const busy: RpcNodeStub["intercept"] = ({ response }) =>
      Boolean(response.writeHead(429, { "retry-after": "20" }).end());
    const [first, second] = [await startRpcNodeStub({ intercept: busy }), await startRpcNodeStub({ head: head(7) })];
    const probed = createProbedPool([first, second]);
    await probed.send();
    expect(probed.states()).toEqual(["cooldown", "ok"]);
    const looks = [first.headRequests, second.headRequests] as const;
    probed.clock.ms += 10_000;
    probed.pool.refreshHeads();
    await vi.waitFor(() => expect(second.headRequests).toBe(looks[1] + 1), { timeout: 60_000 });
    expect(first.headRequests).toBe(looks[0]);
    probed.clock.ms += 10_001;
    expect(probed.states()).toEqual(["failing", "ok"]);
  });

  test("is unaffected by a probe that shutdown aborts", async () => {
    const node = await startRpcNodeStub({ intercept: () => true });
    const closing = new AbortController();
    const { pool, states } = createProbedPool([node], closing);
    pool.refreshHeads();
    await vi.waitFor(() => expect(node.headRequests).toBe(1), { timeout: 60_000 });
    closing.abort();
    await sleep(30);
    expect(states()).toEqual(["unknown"]);
  });

  test("is lagging when it responds and is behind its peers", async () => {
    const probed = createProbedPool([
      await startRpcNodeStub({ head: head(84) }),
      await startRpcNodeStub({ head: head(100) }),
    ]);
    await probeAgain(probed, ["lagging", "ok"]);
    expect(probed.pool.state().head).toMatchObject({ number: 100 });
  });
});

describe("probes", () => {
  test("run once in ten seconds however often they are requested, also for a single endpoint", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const { pool, clock } = createProbedPool([node]);
    for (let round = 0; round < 50; round++) pool.refreshHeads();
    await vi.waitFor(() => expect(node.headRequests).toBe(1), { timeout: 60_000 });
    clock.ms += 9_999;
    pool.refreshHeads();
    await sleep(30);
    expect(node.headRequests).toBe(1);
    clock.ms += 1;
    pool.refreshHeads();
    await vi.waitFor(() => expect(node.headRequests).toBe(2), { timeout: 60_000 });
  });

  test("have checked a chain once the last endpoint has responded or failed", async () => {
    const pending: (() => void)[] = [];
    const held: RpcNodeStub["intercept"] = ({ response }) => pending.push(() => response.writeHead(500).end()) > 0;
    const [first, second] = [await startRpcNodeStub({ head: head(7) }), await startRpcNodeStub({ intercept: held })];
    const { pool, states } = createProbedPool([first, second]);
    pool.refreshHeads();
    await vi.waitFor(() => expect([states()[0], pending.length]).toEqual(["ok", 1]), { timeout: 60_000 });
    expect(pool.state().isChecked).toBe(false);
    second.intercept = down;
    pending[0]?.();
    await vi.waitFor(() => expect(pool.state().isChecked).toBe(true), { timeout: 60_000 });
    expect(states()).toEqual(["ok", "failing"]);
  });

  test("do not count as use of the chain", async () => {
    const { pool, send, clock } = createProbedPool([await startRpcNodeStub({ head: head(7) })]);
    pool.refreshHeads();
    expect(pool.state().lastUsedAt).toBeUndefined();
    await send();
    expect(pool.state().lastUsedAt).toBe(clock.ms);
  });
});

test("a recorded head counts unless it is from the future", async () => {
  const { pool, clock } = createProbedPool([await startRpcNodeStub()]);
  pool.recordHead({ number: 9, timestamp: nowSeconds }, clock.ms);
  expect(pool.state().head).toMatchObject({ number: 9, timestamp: nowSeconds, observedAt: clock.ms });
  pool.recordHead({ number: 99, timestamp: nowSeconds + 3_600 }, clock.ms);
  expect(pool.state().head).toBeUndefined();
});

test.each([
  ["failing", null],
  ["lagging", head(7)],
])("a recorded head reads those of the endpoints again while one is %s", async (state, firstHead) => {
  const [node, other] = [await startRpcNodeStub({ head: firstHead }), await startRpcNodeStub({ head: head(99) })];
  const probed = createProbedPool([node, other]);
  const { pool, clock, states } = probed;
  await probeAgain(probed, [state, "ok"]);
  node.head = head(99);
  clock.ms += 10_000;
  // Another process reads the chain: there is no request here.
  pool.recordHead({ number: 99, timestamp: nowSeconds }, clock.ms);
  await vi.waitFor(() => expect(states()).toEqual(["ok", "ok"]), { timeout: 60_000 });
  const { headRequests } = node;
  clock.ms += 10_000;
  pool.recordHead({ number: 100, timestamp: nowSeconds }, clock.ms);
  await sleep(50);
  expect(node.headRequests).toBe(headRequests);
});

test("an endpoint without a valid head is failing", async () => {
  await probeAgain(createProbedPool([await startRpcNodeStub({ head: null })]), ["failing"]);
});

test("being overtaken does not make an endpoint failing", async () => {
  const [slow, quick] = [await startRpcNodeStub({ head: head(7) }), await startRpcNodeStub({ head: head(7) })];
  const probed = createProbedPool([slow, quick]);
  await probeAgain(probed, ["ok", "ok"]);
  slow.intercept = () => true;
  quick.ready = vi.waitFor(() => expect(slow.requests).toHaveLength(1), { timeout: 60_000 });
  probed.hedges.areDue = true;
  // The hedged request to the second endpoint is faster.
  await probed.send();
  expect(slow.requests).toHaveLength(1);
  expect(probed.states()).toEqual(["ok", "ok"]);
});
