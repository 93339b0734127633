import { describe, expect, test } from "vitest";
import type { EndpointRequest } from "../../../../src/chain/endpoints/endpoint.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

/** What a pool on these nodes tells of its HTTP requests. */
function observed(nodes: readonly RpcNodeStub[]) {
  const told: (EndpointRequest & { outcome: string })[] = [];
  const pool = createPoolOn(nodes, {
    onEndpointRequest: (exchange) => (outcome) => {
      told.push({ ...exchange, outcome });
    },
  });
  const endings = (): string[] => told.map(({ method, outcome }) => `${method} ${outcome}`);
  return { ...pool, told, endings };
}

const failing = (status: number): Partial<RpcNodeStub> => ({
  intercept: ({ response }) => Boolean(response.writeHead(status).end()),
});

describe("the observer of HTTP requests", () => {
  test("receives method, number of calls and outcome", async () => {
    const { told, send, clock } = observed([await startRpcNodeStub()]);
    await send("eth_gasPrice");
    await send("eth_gasPrice");
    clock.ms += 1_000;
    await send("eth_gasPrice");
    expect(told.map(({ method, calls, outcome }) => [method, calls, outcome])).toEqual([
      // Along with the chain's id, which is asked for again after a while.
      ["batch", 2, "ok"],
      ["eth_gasPrice", 1, "ok"],
      ["batch", 2, "ok"],
    ]);
    expect(new Set(told.map(({ endpoint }) => endpoint))).toEqual(new Set([expect.stringMatching(/^[0-9a-f]{6}$/)]));
  });

  test.each<[string, Partial<RpcNodeStub>, string]>([
    ["http_error", failing(403), "batch http_error"],
    ["timeout", { intercept: () => true }, "batch timeout"],
    ["wrong_chain", { chainId: 10 }, "batch wrong_chain"],
    ["invalid_response", { intercept: ({ response }) => Boolean(response.end("no JSON")) }, "batch invalid_response"],
    ["invalid_response", { respond: () => ({ result: 7 }) }, "batch invalid_response"],
    ["network_error", { intercept: ({ response }) => Boolean(response.destroy()) }, "batch network_error"],
    ["rpc_error", { respond: () => ({ error: { code: -32005, message: "rate limit" } }) }, "batch rpc_error"],
  ])("%s: %j", async (_, behaviour, ending) => {
    const { endings, send } = observed([await startRpcNodeStub(behaviour)]);
    await expect(send("eth_gasPrice")).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(endings()[0]).toBe(ending);
  });

  test("reports a revert as ok", async () => {
    const { endings, send } = observed([
      await startRpcNodeStub({ respond: () => ({ error: { code: 3, message: "execution reverted" } }) }),
    ]);
    await expect(send()).rejects.toThrow("execution reverted");
    expect(endings()).toEqual(["batch ok"]);
  });

  test("reports a rejected batch as rpc_error, though its calls succeed separately", async () => {
    const node = await startRpcNodeStub({
      intercept: ({ isBatch, response }) => {
        if (isBatch) sendJson(response, { jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } });
        return isBatch;
      },
    });
    const { endings, send } = observed([node]);
    await send("eth_gasPrice");
    expect(endings()).toEqual(["batch rpc_error", "eth_chainId ok", "eth_gasPrice ok"]);
  });

  test("reports aborted when the caller left before the response", async () => {
    const leaving = new AbortController();
    const node = await startRpcNodeStub({
      intercept: () => {
        leaving.abort();
        return true;
      },
    });
    const { endings, send } = observed([node]);
    await expect(send("eth_gasPrice", leaving.signal)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(endings()).toEqual(["batch aborted"]);
  });

  test("receives one request for an endpoint of another chain", async () => {
    const node = await startRpcNodeStub({
      chainId: 10,
      intercept: ({ isBatch, response }) => isBatch && Boolean(response.writeHead(400).end()),
    });
    const { endings, send } = observed([node]);
    await expect(send("eth_gasPrice")).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(endings().slice(0, 2)).toEqual(["batch http_error", "eth_chainId wrong_chain"]);
    expect(node.requests.flat().filter((method, place) => method === "eth_gasPrice" && place > 1)).toEqual([]);
  });
});
