import { describe, expect, test } from "vitest";
import type { EndpointRequest } from "../../../../src/chain/endpoints/endpoint.js";
import {
  answerJson,
  answerStatus,
  disconnect,
  hang,
  healthy,
  never,
  type RpcNodeStub,
  rejecting,
  returning,
  startPool,
} from "../support/rpc-node-stub.js";

/** Starts an endpoint, and records the HTTP requests to it. */
async function startObserved(behaviour: Partial<RpcNodeStub> = {}, options: Parameters<typeof startPool>[1] = {}) {
  const requests: (EndpointRequest & { outcome: string })[] = [];
  const pool = await startPool([behaviour], {
    onEndpointRequest: (request) => (outcome) => void requests.push({ ...request, outcome }),
    ...options,
  });
  const outcomes = (): string[] => requests.map(({ method, outcome }) => `${method} ${outcome}`);
  return { ...pool, requests, outcomes };
}

const UNAVAILABLE = { reason: "UPSTREAM_UNAVAILABLE" };
const refuseBatch = answerJson({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } });
const rejectingBatches: Partial<RpcNodeStub> = { intercept: (request) => request.isBatch && refuseBatch(request) };

describe("the observer of HTTP requests", () => {
  test("receives method, number of calls and outcome", async () => {
    const { requests, send, clock } = await startObserved();
    await send("eth_gasPrice");
    await send("eth_gasPrice");
    clock.ms += 1_000;
    await send("eth_gasPrice");
    const endpoint = expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/);
    expect(requests).toMatchObject([
      // In a batch with the chain id, which is read again after 250 ms.
      { endpoint, method: "batch", calls: 2, outcome: "ok" },
      { endpoint, method: "eth_gasPrice", calls: 1, outcome: "ok" },
      { endpoint, method: "batch", calls: 2, outcome: "ok" },
    ]);
  });

  test.each<[string, Partial<RpcNodeStub>]>([
    ["http_error", { intercept: answerStatus(403) }],
    ["timeout", { intercept: hang }],
    ["wrong_chain", { chainId: 10 }],
    ["invalid_response", { intercept: ({ response }) => Boolean(response.end("no JSON")) }],
    ["invalid_response", returning(7)],
    ["network_error", { intercept: disconnect }],
    ["rpc_error", rejecting({ code: -32005, message: "rate limit" })],
  ])("receives the outcome %s: %j", async (outcome, behaviour) => {
    const { outcomes, send } = await startObserved(behaviour, outcome === "timeout" ? { callerTimeoutMs: 50 } : {});
    await expect(send("eth_gasPrice")).rejects.toMatchObject(UNAVAILABLE);
    expect(outcomes()[0]).toBe(`batch ${outcome}`);
  });

  test("receives a revert as ok", async () => {
    const { outcomes, send } = await startObserved(rejecting({ code: 3, message: "execution reverted" }));
    await expect(send()).rejects.toThrow("execution reverted");
    expect(outcomes()).toEqual(["batch ok"]);
  });

  test("receives a rejected batch as rpc_error, though its calls succeed separately", async () => {
    const { outcomes, send } = await startObserved(rejectingBatches);
    await send("eth_gasPrice");
    expect(outcomes()).toEqual(["batch rpc_error", "eth_chainId ok", "eth_gasPrice ok"]);
  });

  test("receives aborted when the caller left before the response", async () => {
    const leaving = new AbortController();
    const { outcomes, send } = await startObserved({
      intercept: () => {
        leaving.abort();
        return true;
      },
    });
    await expect(send("eth_gasPrice", leaving.signal)).rejects.toMatchObject(UNAVAILABLE);
    expect(outcomes()).toEqual(["batch aborted"]);
  });

  test("receives one request for an endpoint of another chain", async () => {
    const rejectBatch = answerStatus(400);
    const { nodes, outcomes, send } = await startObserved({
      chainId: 10,
      intercept: (request) => request.isBatch && rejectBatch(request),
    });
    await expect(send("eth_gasPrice")).rejects.toMatchObject(UNAVAILABLE);
    expect(outcomes().slice(0, 2)).toEqual(["batch http_error", "eth_chainId wrong_chain"]);
    expect(nodes[0].requests.flat().filter((method, place) => method === "eth_gasPrice" && place > 1)).toEqual([]);
  });
});

describe("the observer of one call", () => {
  const refusal = new Error("refused");
  const onRequest = () => {
    throw refusal;
  };

  test.each<[string, Partial<RpcNodeStub>]>([
    ["in a batch with the chain id", {}],
    ["beside the read of the chain id", rejectingBatches],
    ["with retries", { intercept: answerStatus(503) }],
  ])("is called before each HTTP request: %s", async (_, behaviour) => {
    const { client, nodes } = await startPool([behaviour]);
    for (const round of [1, 2]) {
      let count = 0;
      await client.send("eth_gasPrice", [], never, { onRequest: () => count++ }).catch(() => {});
      expect(count, `round ${round}`).toBeGreaterThan(0);
      expect(nodes[0].requests.splice(0)).toHaveLength(count);
    }
  });

  test("prevents the request by throwing, which is no failure of the endpoint", async () => {
    const { nodes, client, states, failures, send } = await startPool([{}]);
    for (let round = 0; round < 10; round += 1) {
      await expect(client.send("eth_gasPrice", [], never, { onRequest })).rejects.toBe(refusal);
    }
    expect([nodes[0].requests, failures]).toEqual([[], []]);
    expect(await send("eth_gasPrice")).toBe("0x1");
    expect(states()).toEqual(["ok"]);
  });

  test("that refuses the probe of an open circuit breaker leaves it to the next request", async () => {
    const { nodes, client, pool, clock, send } = await startPool([{ intercept: answerStatus(503) }]);
    for (let round = 0; round < 5; round += 1) await send("eth_gasPrice").catch(() => {});
    expect(pool.state().endpoints).toMatchObject([{ state: "failing", failure: "answered 503" }]);
    nodes[0].intercept = healthy;
    clock.ms += 60_000;
    await expect(client.send("eth_gasPrice", [], never, { onRequest })).rejects.toBe(refusal);
    await send("eth_gasPrice");
    expect(pool.state().endpoints).toMatchObject([{ state: "ok" }]);
  });
});
