import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { afterAll, describe, expect, test, vi } from "vitest";
import { createEndpointPool, type EndpointPool } from "../../../../src/chain/endpoints/endpoint-pool.js";
import { type ManualClock, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const dispatcher = new Agent();
afterAll(() => dispatcher.destroy());
const never = new AbortController().signal;
const nowSeconds = Math.floor(Date.now() / 1000);
const head = (number: number) => ({ number: `0x${number.toString(16)}`, timestamp: `0x${nowSeconds.toString(16)}` });
const down: RpcNodeStub["intercept"] = ({ response }) => Boolean(response.writeHead(500).end());
const up: RpcNodeStub["intercept"] = () => false;

/** A pool that is looked at as probes do. */
function poolOf(
  nodes: readonly RpcNodeStub[],
  closing = new AbortController(),
): { pool: EndpointPool; clock: ManualClock; states: () => string[] } {
  const clock = { ms: 1_000_000 };
  const pool = createEndpointPool({
    slug: "optimism",
    chainId: 1,
    urls: nodes.map(({ url }) => url),
    dispatcher,
    maxBytes: 10_000,
    attemptTimeoutMs: 1_000,
    onFailure: () => {},
    closing: closing.signal,
    now: () => clock.ms,
    random: () => 0,
  });
  return { pool, clock, states: () => pool.state().endpoints.map(({ state }) => state) };
}

async function lookAgain({ pool, clock, states }: ReturnType<typeof poolOf>, wanted: readonly string[]): Promise<void> {
  clock.ms += 10_000;
  pool.probe();
  await vi.waitFor(() => expect(states()).toEqual(wanted), { timeout: 60_000 });
}

describe("the state of an endpoint", () => {
  test("is unknown before the first request, then follows the probe", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const looked = poolOf([node]);
    expect(looked.pool.state()).toEqual({
      head: undefined,
      endpoints: [{ endpoint: expect.stringMatching(/^[0-9a-f]{6}$/), state: "unknown", head: undefined }],
      usedAt: undefined,
    });
    await lookAgain(looked, ["ok"]);
    const seen = { number: 7, timestamp: nowSeconds, observedAt: looked.clock.ms };
    expect(looked.pool.state()).toMatchObject({ head: seen, endpoints: [{ head: seen }] });
  });

  test("is failing after a failed probe or read, and ok after the next success", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const looked = poolOf([node]);
    await lookAgain(looked, ["ok"]);
    node.intercept = down;
    await lookAgain(looked, ["failing"]);
    node.intercept = up;
    await lookAgain(looked, ["ok"]);
    node.intercept = down;
    await expect(looked.pool.send("eth_gasPrice", [], never)).rejects.toThrow();
    expect(looked.states()).toEqual(["failing"]);
    node.intercept = up;
    await looked.pool.send("eth_gasPrice", [], never);
    expect(looked.states()).toEqual(["ok"]);
  });

  test("is failing while its breaker is open, whatever its head", async () => {
    const [first, second] = [
      await startRpcNodeStub({ head: head(7), intercept: down }),
      await startRpcNodeStub({ head: head(7) }),
    ];
    const looked = poolOf([first, second]);
    for (let round = 0; round < 5; round++) await looked.pool.send("eth_gasPrice", [], never);
    first.intercept = up;
    const looks = first.headRequests;
    looked.clock.ms += 10_000;
    looked.pool.probe();
    await vi.waitFor(() => expect(first.headRequests).toBe(looks + 1), { timeout: 60_000 });
    await sleep(30);
    expect(looked.states()).toEqual(["failing", "ok"]);
    looked.clock.ms += 30_000;
    expect(looked.states()).toEqual(["ok", "ok"]);
  });

  test("is cooldown while the endpoint asks for it", async () => {
    const busy: RpcNodeStub["intercept"] = ({ response }) =>
      Boolean(response.writeHead(429, { "retry-after": "20" }).end());
    const [first, second] = [await startRpcNodeStub({ intercept: busy }), await startRpcNodeStub({ head: head(7) })];
    const looked = poolOf([first, second]);
    await looked.pool.send("eth_gasPrice", [], never);
    expect(looked.states()).toEqual(["cooldown", "ok"]);
    const looks = [first.headRequests, second.headRequests] as const;
    looked.clock.ms += 10_000;
    looked.pool.probe();
    await vi.waitFor(() => expect(second.headRequests).toBe(looks[1] + 1), { timeout: 60_000 });
    expect(first.headRequests).toBe(looks[0]);
    looked.clock.ms += 10_001;
    expect(looked.states()).toEqual(["failing", "ok"]);
  });

  test("is unaffected by a probe that shutdown aborts", async () => {
    const node = await startRpcNodeStub({ intercept: () => true });
    const closing = new AbortController();
    const { pool, states } = poolOf([node], closing);
    pool.probe();
    await vi.waitFor(() => expect(node.headRequests).toBe(1), { timeout: 60_000 });
    closing.abort();
    await sleep(30);
    expect(states()).toEqual(["unknown"]);
  });

  test("is lagging when it responds and is behind its peers", async () => {
    const looked = poolOf([await startRpcNodeStub({ head: head(84) }), await startRpcNodeStub({ head: head(100) })]);
    await lookAgain(looked, ["lagging", "ok"]);
    expect(looked.pool.state().head).toMatchObject({ number: 100 });
  });
});

describe("probes", () => {
  test("run once in ten seconds however often they are requested, also for a single endpoint", async () => {
    const node = await startRpcNodeStub({ head: head(7) });
    const { pool, clock } = poolOf([node]);
    for (let round = 0; round < 50; round++) pool.probe();
    await vi.waitFor(() => expect(node.headRequests).toBe(1), { timeout: 60_000 });
    clock.ms += 9_999;
    pool.probe();
    await sleep(30);
    expect(node.headRequests).toBe(1);
    clock.ms += 1;
    pool.probe();
    await vi.waitFor(() => expect(node.headRequests).toBe(2), { timeout: 60_000 });
  });

  test("do not count as use of the chain", async () => {
    const { pool, clock } = poolOf([await startRpcNodeStub({ head: head(7) })]);
    pool.probe();
    expect(pool.state().lastUsedAt).toBeUndefined();
    await pool.send("eth_gasPrice", [], never);
    expect(pool.state().lastUsedAt).toBe(clock.ms);
  });
});

test("a recorded head counts unless it is from the future", async () => {
  const { pool, clock } = poolOf([await startRpcNodeStub()]);
  pool.recordHead({ number: 9, timestamp: nowSeconds });
  expect(pool.state().head).toEqual({ number: 9, timestamp: nowSeconds, observedAt: clock.ms });
  pool.recordHead({ number: 99, timestamp: nowSeconds + 3_600 });
  expect(pool.state().head).toBeUndefined();
});

test("an endpoint without a valid head is failing", async () => {
  await lookAgain(poolOf([await startRpcNodeStub({ head: null })]), ["failing"]);
});

test("being overtaken does not make an endpoint failing", async () => {
  const slow = await startRpcNodeStub({ head: head(7), delayMs: 600 });
  const looked = poolOf([slow, await startRpcNodeStub({ head: head(7) })]);
  await lookAgain(looked, ["ok", "ok"]);
  // The second is asked beside the first, and quicker.
  await looked.pool.send("eth_gasPrice", [], never);
  expect(slow.requests).toHaveLength(1);
  expect(looked.states()).toEqual(["ok", "ok"]);
});
