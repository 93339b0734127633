import { describe, expect, test, vi } from "vitest";
import type { ChainBlockAges } from "../../../../src/chain/block-age/block-age-monitor.js";
import type { HeadRead } from "../../../../src/chain/block-age/chain-history.js";
import { createChainClients } from "../../../../src/chain/chains.js";
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
  const state = { isStalled: false, needsRead: false };
  const heads: HeadRead[] = [];
  const dates: { readonly host: string; readonly date: string; readonly startedAtMs: number }[] = [];
  const blockAges: ChainBlockAges = {
    isStalled: () => state.isStalled,
    needsRead: () => state.needsRead,
    isTooOld: ({ timestamp }) => nowSeconds - timestamp > 120,
    recordHead: (read) => void heads.push(read),
    recordDate: (host, date, startedAtMs) => void dates.push({ host, date, startedAtMs }),
  };
  return { ...createPoolOn(nodes, { blockAges }), state, heads, dates };
}

const countHeadReads = (nodes: readonly RpcNodeStub[]) => nodes.reduce((sum, node) => sum + node.headRequests, 0);

describe("an endpoint whose newest block is too old", () => {
  test("is used last and counts as lagging, also without a peer that says so", async () => {
    const nodes = [
      await startRpcNodeStub({ ...result("0xa"), head: head(7, OLD) }),
      await startRpcNodeStub({ ...result("0xb"), head: undefined }),
    ];
    const { client, clock, send, heads } = createLimitedPool(nodes);
    clock.ms += 10_000;
    await send();
    await vi.waitFor(() => expect(client.state().endpoints[0]?.state).toBe("lagging"), { timeout: 60_000 });
    expect(heads).toMatchObject([{ source: expect.stringContaining("optimism[1]"), timestamp: OLD, readAt: clock.ms }]);
    expect(await send()).toBe("0xb");
  });

  test("is used in its place when all are", async () => {
    const nodes = [
      await startRpcNodeStub({ ...result("0xa"), head: head(7, OLD) }),
      await startRpcNodeStub({ ...result("0xb"), head: head(7, OLD) }),
    ];
    const { client, clock, send } = createLimitedPool(nodes);
    clock.ms += 10_000;
    await send();
    const states = () => client.state().endpoints.map(({ state }) => state);
    await vi.waitFor(() => expect(states()).toEqual(["lagging", "lagging"]), { timeout: 60_000 });
    expect(await send()).toBe("0xa");
  });
});

describe("the heads of the endpoints", () => {
  test("are read every one and a half seconds at most while the chain stands still and is asked", async () => {
    const nodes = [await startRpcNodeStub({ head: head(7, OLD) }), await startRpcNodeStub({ head: head(7, OLD) })];
    const { clock, send, state, heads } = createLimitedPool(nodes);
    state.isStalled = true;
    for (let second = 0; second < 6; second += 1) {
      const known = heads.length;
      clock.ms += 1_500;
      await Promise.all([send(), send(), send()]);
      await vi.waitFor(() => expect(heads).toHaveLength(known + 2), { timeout: 60_000 });
      clock.ms += 1_000;
      await send();
    }
    expect(countHeadReads(nodes)).toBe(12);
  });

  test("are read of a single endpoint only if nothing else has read a block for a while", async () => {
    const nodes = [await startRpcNodeStub({ head: head(7, YOUNG) })];
    const { clock, send, state, heads } = createLimitedPool(nodes);
    clock.ms += 60_000;
    await send();
    expect(countHeadReads(nodes)).toBe(0);
    state.needsRead = true;
    await send();
    await vi.waitFor(() => expect(heads).toHaveLength(1), { timeout: 60_000 });
  });
});

test("the header Date of every response is recorded under its host, without the key in the URL", async () => {
  const node = await startRpcNodeStub();
  const { send, dates } = createLimitedPool([node]);
  const startedAtMs = Date.now();
  await send();
  expect(dates).toMatchObject([{ host: new URL(node.url).host, date: expect.stringMatching(/ GMT$/) }]);
  expect(dates[0]?.startedAtMs).toBeGreaterThanOrEqual(startedAtMs);
});

test("a caller's endpoint tells nothing about the clock or the age of a chain", async () => {
  const node = await startRpcNodeStub({ head: head(7, OLD) });
  const record = vi.fn();
  const blockAges = {
    ...{
      stalledCount: () => 0,
      findStalled: () => undefined,
      isTooOld: () => false,
      getAgeMs: () => 0,
      needsRead: () => true,
    },
    ...{ recordHead: record, recordDate: record, clock: () => ({ offsetMs: 0, evidence: undefined }) },
  };
  const networks = { mainnet: new Map([["optimism", { chainId: 1, urls: ["http://127.0.0.1:1"] }]]) };
  const chains = createChainClients({ networks, blockAges, customUrlPolicy: "any", onFailure: () => {} });
  closeAfterTest(chains);
  const { signal } = new AbortController();
  const block = await chains.withCustomEndpoints(
    "mainnet",
    new Map([["optimism", node.url]]),
    (access) => access.getClient("optimism").send("eth_getBlockByNumber", ["latest", false], signal),
    { caller: "192.0.2.7", signal },
  );
  expect(block).toEqual(node.head);
  expect(record).not.toHaveBeenCalled();
});
