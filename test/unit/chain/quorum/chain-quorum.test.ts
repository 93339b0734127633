import { describe, expect, test } from "vitest";
import { createUpstreamBudget, type UpstreamBudget } from "../../../../src/chain/endpoints/budget/upstream-budget.js";
import { createChainQuorum } from "../../../../src/chain/quorum/chain-quorum.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const NEVER = new AbortController().signal;
const HEAD = { number: "0x64", timestamp: "0x64", hash: `0x${"a".repeat(64)}` };

/** Two of three endpoints that tell the same have to agree. */
async function startQuorum() {
  const upstreamBudget = createUpstreamBudget();
  const nodes: RpcNodeStub[] = [];
  for (let index = 0; index < 3; index += 1)
    nodes.push(
      await startRpcNodeStub({
        head: HEAD,
        respond: ({ method }) => ({ result: method === "eth_getLogs" ? [] : "0x1" }),
      }),
    );
  const { client: pool } = createPoolOn(nodes, { upstreamBudget });
  const { client } = createChainQuorum(pool, {
    quorum: 2,
    sampleRate: 0,
    observer: { onOutvoted: () => {}, onRead: () => {}, onCalls: () => {} },
    closing: NEVER,
  });
  const names = pool.state().endpoints.map(({ endpoint }) => endpoint);
  return {
    nodes,
    /** Takes all requests in flight that these endpoints may have. */
    fill: (...indexes: number[]) => indexes.map((index) => fill(upstreamBudget, names[index] ?? "")),
    reads: {
      "a read at the latest block": () => client.send("eth_call", [{}, "latest"], NEVER),
      "a read without a block": () => client.send("eth_gasPrice", [], NEVER),
      "a search for logs": () => client.getLogs({ address: "0x1", topics: [] }, { from: 1, to: 9 }, false, NEVER),
    },
  };
}

/** Returns a function that ends the requests again. */
function fill(budget: UpstreamBudget, endpoint: string): () => void {
  const requests: { release(): void }[] = [];
  while (budget.hasCapacityFor(endpoint)) requests.push(budget.openRequest(endpoint));
  return () => {
    for (const request of requests) request.release();
  };
}

describe.each(["a read at the latest block", "a read without a block", "a search for logs"] as const)("%s", (kind) => {
  const OVERLOADED = {
    reason: "OVERLOADED",
    message: "too many requests to RPC endpoints wait for a response: try again later",
    retryAfterSeconds: 1,
  };

  test("is refused as without a quorum while all endpoints have their share of requests", async () => {
    const { fill: fillAll, reads, nodes } = await startQuorum();
    const release = fillAll(0, 1, 2);
    await expect(reads[kind]()).rejects.toMatchObject(OVERLOADED);
    expect(nodes.flatMap(({ requests }) => requests)).toEqual([]);
    for (const each of release) each();
    await expect(reads[kind]()).resolves.toBeDefined();
  });

  test("is refused while one answers and the others have their share", async () => {
    const { fill: fillSome, reads } = await startQuorum();
    const [release] = fillSome(1, 2);
    await expect(reads[kind]()).rejects.toMatchObject(OVERLOADED);
    release?.();
    await expect(reads[kind]()).resolves.toBeDefined();
  });

  test("is the endpoints' failure where too few of them answer anyway", async () => {
    const { fill: fillOne, reads, nodes } = await startQuorum();
    for (const node of nodes.slice(0, 2)) node.intercept = ({ response }) => response.destroy() !== undefined;
    fillOne(2);
    await expect(reads[kind]()).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "only 0 of the 2 RPC endpoints of optimism that have to agree responded (RPC_QUORUM)",
    });
  });
});
