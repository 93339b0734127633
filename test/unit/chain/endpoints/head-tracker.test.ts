import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import { createHeads } from "../../../../src/chain/endpoints/head-tracker.js";
import { poolOn, type RpcNode, startNode } from "../support/rpc-node-stub.js";

const head = (number: number, timestamp: number) => ({
  number: `0x${number.toString(16)}`,
  timestamp: `0x${timestamp.toString(16)}`,
});
const result = (value: string) => ({ answer: () => ({ result: value }) });

/** Reads until all endpoints have been asked for their heads once more, and a bit longer. */
async function look(pool: ReturnType<typeof poolOn>, nodes: readonly RpcNode[]): Promise<void> {
  const before = nodes.map(({ looks }) => looks);
  pool.clock.ms += 10_000;
  await pool.send();
  await vi.waitFor(() => expect(nodes.map(({ looks }) => looks)).toEqual(before.map((looks) => looks + 1)));
  await sleep(30);
}

describe("an endpoint behind its peers", () => {
  test.each([
    ["16 blocks", head(84, 1000), true],
    ["15 blocks", head(85, 1000), false],
    ["30 seconds", head(100, 970), true],
    ["29 seconds", head(100, 971), false],
    ["no blocks", head(100, 1000), false],
  ])("by %s", async (_, behind, isPassedOver) => {
    const nodes = [await startNode({ ...result("0xa"), head: behind }), await startNode(result("0xb"))] as const;
    nodes[1].head = head(100, 1000);
    const pool = poolOn(nodes);
    await look(pool, nodes);
    expect(await pool.send()).toBe(isPassedOver ? "0xb" : "0xa");
  });

  test("comes back when it has caught up", async () => {
    const nodes = [await startNode({ ...result("0xa"), head: head(1, 1) }), await startNode(result("0xb"))] as const;
    nodes[1].head = head(100, 1000);
    const pool = poolOn(nodes);
    await look(pool, nodes);
    expect(await pool.send()).toBe("0xb");
    nodes[0].head = head(200, 2000);
    await look(pool, nodes);
    expect(await pool.send()).toBe("0xa");
  });

  test("is asked where its peers fail, but not before", async () => {
    const nodes = [await startNode({ ...result("0xa"), head: head(1, 1) }), await startNode(result("0xb"))] as const;
    nodes[1].head = head(100, 1000);
    const pool = poolOn(nodes);
    await look(pool, nodes);
    expect(await pool.send()).toBe("0xb");
    nodes[1].treat = ({ response }) => Boolean(response.writeHead(500).end());
    expect(await pool.send()).toBe("0xa");
  });

  test("is none for a peer whose head is far in the future", async () => {
    const nodes = [await startNode({ ...result("0xa"), head: head(1, 1) }), await startNode(result("0xb"))] as const;
    nodes[1].head = head(100, Math.floor(Date.now() / 1000) + 120);
    const pool = poolOn(nodes);
    await look(pool, nodes);
    expect(await pool.send()).toBe("0xa");
  });

  test.each([
    ["nothing", undefined],
    ["no block", null],
    ["no number", { number: 7, timestamp: "0x1" }],
    ["no time", { number: "0x1", timestamp: "soon" }],
  ])("is not known where a peer says %s of its head", async (_, said) => {
    const nodes = [await startNode({ ...result("0xa"), head: head(1, 1) }), await startNode(result("0xb"))] as const;
    nodes[1].head = said;
    const pool = poolOn(nodes);
    await look(pool, nodes);
    expect(await pool.send()).toBe("0xa");
    expect(pool.failures).toEqual([]);
  });
});

describe("heads", () => {
  test("are asked for while somebody reads, every ten seconds at most, and nobody waits for them", async () => {
    const nodes = [await startNode(), await startNode()];
    const [, second] = nodes as [RpcNode, RpcNode];
    const { send, clock } = poolOn(nodes, { attemptMs: 3_000 });
    second.treat = () => true;
    for (let round = 0; round < 5; round++) await send();
    clock.ms += 9_999;
    await send();
    await sleep(20);
    expect(nodes.map(({ looks }) => looks)).toEqual([1, 1]);
    clock.ms += 1;
    await send();
    await vi.waitFor(() => expect(nodes.map(({ looks }) => looks)).toEqual([2, 2]));
  });

  test("of a single endpoint are of no interest", async () => {
    const node = await startNode();
    await poolOn([node]).send();
    await sleep(20);
    expect(node.looks).toBe(0);
  });

  test("are no more waited for when the client closes", async () => {
    const closing = new AbortController();
    const dispatcher = new Agent();
    const nodes = [await startNode(), await startNode()];
    const [, second] = nodes as [RpcNode, RpcNode];
    second.treat = () => true;
    await poolOn(nodes, { closing: closing.signal, dispatcher, attemptMs: 60_000 }).send();
    await vi.waitFor(() => expect(second.looks).toBe(1));
    closing.abort();
    await vi.waitFor(() => expect(second.cutOff).toBe(1));
    await dispatcher.destroy();
  });

  test("do not disturb an endpoint that is to be left alone", async () => {
    const nodes = [await startNode({ ...result("0xa"), chainId: 10 }), await startNode(result("0xb"))];
    const [wrong] = nodes as [RpcNode, RpcNode];
    const { send, clock } = poolOn(nodes);
    await send();
    await sleep(30);
    const asked = wrong.requests.length + wrong.looks;
    clock.ms += 10_000;
    await send();
    await sleep(30);
    expect(wrong.requests.length + wrong.looks).toBe(asked);
  });

  test("ask for no more of an endpoint that then wants to be left alone", async () => {
    const nodes = [await startNode(), await startNode(result("0xb"))];
    const [first] = nodes as [RpcNode, RpcNode];
    first.treat = ({ calls, response }) => {
      const looks = calls.some(({ method }) => method === "eth_getBlockByNumber");
      if (looks) response.writeHead(429, { "retry-after": "9" }).end();
      return looks;
    };
    const { send } = poolOn(nodes);
    await send();
    await sleep(30);
    expect(await send()).toBe("0xb");
  });

  test("survive a look that fails at once", async () => {
    const heads = createHeads({ peers: [1, 2], readLatest: () => Promise.reject(new Error("no")), now: () => 0 });
    heads.refresh();
    await sleep(0);
    expect(heads.lags(1)).toBe(false);
  });
});
