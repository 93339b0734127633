import { describe, expect, test } from "vitest";
import type { EndpointRequest } from "../../../../src/chain/endpoints/endpoint.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

/** Creates a pool that records its HTTP requests. */
function createObservedPool(nodes: readonly RpcNodeStub[], options: Parameters<typeof createPoolOn>[1] = {}) {
  const requests: (EndpointRequest & { outcome: string })[] = [];
  const pool = createPoolOn(nodes, {
    onEndpointRequest: (request) => (outcome) => {
      requests.push({ ...request, outcome });
    },
    ...options,
  });
  const outcomes = (): string[] => requests.map(({ method, outcome }) => `${method} ${outcome}`);
  return { ...pool, requests, outcomes };
}

const failing = (status: number): Partial<RpcNodeStub> => ({
  intercept: ({ response }) => Boolean(response.writeHead(status).end()),
});

describe("the observer of HTTP requests", () => {
  test("receives method, number of calls and outcome", async () => {
    const { requests, send, clock } = createObservedPool([await startRpcNodeStub()]);
    await send("eth_gasPrice");
    await send("eth_gasPrice");
    clock.ms += 1_000;
    await send("eth_gasPrice");
    expect(requests.map(({ method, calls, outcome }) => [method, calls, outcome])).toEqual([
      // In a batch with the chain id, which is read again after 250 ms.
      ["batch", 2, "ok"],
      ["eth_gasPrice", 1, "ok"],
      ["batch", 2, "ok"],
    ]);
    expect(new Set(requests.map(({ endpoint }) => endpoint))).toEqual(
      new Set([expect.stringMatching(/^optimism\[1\]#[0-9a-f]{6}$/)]),
    );
  });

  test.each<[string, Partial<RpcNodeStub>, string]>([
    ["http_error", failing(403), "batch http_error"],
    ["timeout", { intercept: () => true }, "batch timeout"],
    ["wrong_chain", { chainId: 10 }, "batch wrong_chain"],
    ["invalid_response", { intercept: ({ response }) => Boolean(response.end("no JSON")) }, "batch invalid_response"],
    ["invalid_response", { respond: () => ({ result: 7 }) }, "batch invalid_response"],
    ["network_error", { intercept: ({ response }) => Boolean(response.destroy()) }, "batch network_error"],
    ["rpc_error", { respond: () => ({ error: { code: -32005, message: "rate limit" } }) }, "batch rpc_error"],
  ])("%s: %j", async (_, behaviour, expected) => {
    const options = expected === "batch timeout" ? { callerTimeoutMs: 50 } : {};
    const { outcomes, send } = createObservedPool([await startRpcNodeStub(behaviour)], options);
    await expect(send("eth_gasPrice")).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(outcomes()[0]).toBe(expected);
  });

  test("reports a revert as ok", async () => {
    const { outcomes, send } = createObservedPool([
      await startRpcNodeStub({ respond: () => ({ error: { code: 3, message: "execution reverted" } }) }),
    ]);
    await expect(send()).rejects.toThrow("execution reverted");
    expect(outcomes()).toEqual(["batch ok"]);
  });

  test("reports a rejected batch as rpc_error, though its calls succeed separately", async () => {
    const node = await startRpcNodeStub({
      intercept: ({ isBatch, response }) => {
        if (isBatch) sendJson(response, { jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } });
        return isBatch;
      },
    });
    const { outcomes, send } = createObservedPool([node]);
    await send("eth_gasPrice");
    expect(outcomes()).toEqual(["batch rpc_error", "eth_chainId ok", "eth_gasPrice ok"]);
  });

  test("reports aborted when the caller left before the response", async () => {
    const leaving = new AbortController();
    const node = await startRpcNodeStub({
      intercept: () => {
        leaving.abort();
        return true;
      },
    });
    const { outcomes, send } = createObservedPool([node]);
    await expect(send("eth_gasPrice", leaving.signal)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(outcomes()).toEqual(["batch aborted"]);
  });

  test("receives one request for an endpoint of another chain", async () => {
    const node = await startRpcNodeStub({
      chainId: 10,
      intercept: ({ isBatch, response }) => isBatch && Boolean(response.writeHead(400).end()),
    });
    const { outcomes, send } = createObservedPool([node]);
    await expect(send("eth_gasPrice")).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(outcomes().slice(0, 2)).toEqual(["batch http_error", "eth_chainId wrong_chain"]);
    expect(node.requests.flat().filter((method, place) => method === "eth_gasPrice" && place > 1)).toEqual([]);
  });
});

describe("the observer of one call", () => {
  const rejectingBatches = {
    intercept: ({ isBatch, response }) => {
      if (isBatch) sendJson(response, { jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } });
      return isBatch;
    },
  } satisfies Partial<RpcNodeStub>;
  const never = new AbortController().signal;

  test.each<[string, Partial<RpcNodeStub>]>([
    ["in a batch with the chain id", {}],
    ["beside the read of the chain id", rejectingBatches],
    ["with retries", failing(503)],
  ])("is called before each HTTP request: %s", async (_, behaviour) => {
    const node = await startRpcNodeStub(behaviour);
    const { client } = createPoolOn([node]);
    for (const round of [1, 2]) {
      let count = 0;
      await client.send("eth_gasPrice", [], never, { onRequest: () => count++ }).catch(() => {});
      expect(count, `round ${round}`).toBeGreaterThan(0);
      expect(node.requests).toHaveLength(count);
      node.requests.length = 0;
    }
  });

  test("prevents the request by throwing, which is no failure of the endpoint", async () => {
    const node = await startRpcNodeStub();
    const { client, pool, failures, send } = createPoolOn([node]);
    const refusal = new Error("refused");
    const refuse = () => {
      throw refusal;
    };
    for (let round = 0; round < 10; round += 1) {
      await expect(client.send("eth_gasPrice", [], never, { onRequest: refuse })).rejects.toBe(refusal);
    }
    expect(node.requests).toEqual([]);
    expect(failures).toEqual([]);
    expect(await send("eth_gasPrice")).toBe("0x1");
    expect(pool.state().endpoints).toMatchObject([{ state: "ok" }]);
  });

  test("that refuses the probe of an open circuit breaker leaves it to the next request", async () => {
    const node = await startRpcNodeStub(failing(503));
    const { client, pool, clock, send } = createPoolOn([node]);
    for (let round = 0; round < 5; round += 1) await send("eth_gasPrice").catch(() => {});
    expect(pool.state().endpoints).toMatchObject([{ state: "failing", failure: "answered 503" }]);
    node.intercept = () => false;
    clock.ms += 60_000;
    const refuse = () => {
      throw new Error("refused");
    };
    await expect(client.send("eth_gasPrice", [], never, { onRequest: refuse })).rejects.toThrow("refused");
    await send("eth_gasPrice");
    expect(pool.state().endpoints).toMatchObject([{ state: "ok" }]);
  });
});
