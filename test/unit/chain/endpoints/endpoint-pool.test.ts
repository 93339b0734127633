import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import { logFilter } from "../support/log-chain-stub.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub, UNAVAILABLE_ERROR } from "../support/rpc-node-stub.js";

const hang = { intercept: () => true } satisfies Partial<RpcNodeStub>;
const answering = (status: number, headers = {}) =>
  ({
    intercept: ({ response }) => {
      response.writeHead(status, headers).end("{}");
      return true;
    },
  }) satisfies Partial<RpcNodeStub>;
const saying =
  (body: unknown): RpcNodeStub["intercept"] =>
  ({ response }) => {
    sendJson(response, body);
    return true;
  };
const methods = (node: RpcNodeStub) => node.requests.flat().filter((method) => method !== "eth_chainId");
const result = (value: string) => ({ respond: () => ({ result: value }) });

describe("an endpoint pool", () => {
  test("uses only the first endpoint while it responds", async () => {
    const [first, second] = [await startRpcNodeStub(result("0xa")), await startRpcNodeStub(result("0xb"))];
    const { send, failures } = createPoolOn([first, second]);
    expect(await send()).toBe("0xa");
    expect(await send()).toBe("0xa");
    expect([methods(first).length, methods(second).length]).toEqual([2, 0]);
    expect(failures).toEqual([]);
  });

  test("returns null as a result", async () => {
    const { send } = createPoolOn([await startRpcNodeStub({ respond: () => ({ result: null }) })]);
    expect(await send("eth_getTransactionReceipt")).toBeNull();
  });

  test.each<[string, Partial<RpcNodeStub>, string]>([
    ["answers 500", answering(500), "answered 500"],
    ["answers 429", answering(429), "answered 429: too many requests"],
    ["returns no JSON-RPC", { intercept: saying([]) }, "returned no valid JSON-RPC response"],
    ["responds to another call", { intercept: saying({ id: 0, result: 1 }) }, "returned no valid JSON-RPC response"],
    [
      "is rate limited",
      { respond: () => ({ error: { code: -32005, message: "rate limit" } }) },
      "answered JSON-RPC error -32005",
    ],
    [
      "returns too many bytes",
      { respond: () => ({ result: `0x${"0".repeat(10_000)}` }) },
      "answered more than 10000 bytes",
    ],
    ["serves another chain", { chainId: 10 }, "serves another chain"],
  ])("fails over to the next endpoint when one %s", async (_, behaviour, problem) => {
    const nodes = [await startRpcNodeStub(behaviour), await startRpcNodeStub(result("0xb"))];
    const { send, failures } = createPoolOn(nodes);
    expect(await send()).toBe("0xb");
    expect(failures).toMatchObject([{ chain: "optimism", method: "eth_call", error: problem }]);
    expect(JSON.stringify(failures)).not.toContain("secret-key");
  });

  test("names only the chain when no endpoint responds", async () => {
    const refusing = { respond: () => ({ error: { code: 1, message: "secret" } }) };
    const { send, failures } = createPoolOn([await startRpcNodeStub(refusing)]);
    const error = await send().catch((reason: unknown) => reason);
    expect(error).toMatchObject(UNAVAILABLE_ERROR);
    expect(JSON.stringify([error, (error as Error).cause, failures])).not.toContain("secret");
  });

  test.each([
    { code: 3, message: "execution reverted: x", data: "0x08c379a0" },
    { code: -32000, message: "execution reverted" },
    { code: -32015, message: "VM execution error." },
    { code: -32603, message: "EVM error InvalidFEOpcode" },
    { code: -32000, message: "gas required exceeds allowance (0)" },
  ])("distinguishes a revert from an endpoint failure: %j", async (error) => {
    const [first, second] = [await startRpcNodeStub({ respond: () => ({ error }) }), await startRpcNodeStub()];
    const { send } = createPoolOn([first, second]);
    // Repeatedly: a revert counts as a successful response.
    for (let round = 0; round < 6; round++) {
      const thrown = await send().catch((reason: unknown) => reason);
      expect(thrown).toBeInstanceOf(RevertError);
      expect(thrown).toMatchObject({ code: error.code, data: error.data });
    }
    expect(methods(second)).toEqual([]);
  });

  test("does not report a revert for a method that runs no contract", async () => {
    const error = { code: 3, message: "execution reverted" };
    const { send } = createPoolOn([
      await startRpcNodeStub({ respond: () => ({ error }) }),
      await startRpcNodeStub(result("0xb")),
    ]);
    expect(await send("eth_gasPrice")).toBe("0xb");
  });

  test("sends the user info of a URL as a header", async () => {
    const node = await startRpcNodeStub({
      intercept: ({ calls, response }) => {
        const { authorization } = response.req.headers;
        sendJson(
          response,
          calls.map(({ id, method }) => ({ id, result: method === "eth_chainId" ? "0x1" : authorization })),
        );
        return true;
      },
    });
    const { send } = createPoolOn([node], { urls: [node.url.replace("http://", "http://us%65r:p%40ss%zz@")] });
    expect(await send("web3_clientVersion")).toBe(`Basic ${Buffer.from("user:p@ss%zz").toString("base64")}`);
  });
});

describe("a read", () => {
  test("is sent at most three times, to different endpoints first", async () => {
    const nodes = await Promise.all([1, 2, 3, 4].map(() => startRpcNodeStub(answering(500))));
    await expect(createPoolOn(nodes).send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    // The batch with the chain id is rejected; then the chain id alone is read, which fails too.
    expect(nodes.map((node) => methods(node).length)).toEqual([1, 1, 1, 0]);
  });

  test("retries the same endpoint after a random delay when there is no other", async () => {
    const node = await startRpcNodeStub();
    const delays: number[] = [];
    const { send } = createPoolOn([node], {
      random: () => 0.9,
      async sleep(ms, signal, purpose) {
        if (purpose === "retry") delays.push(ms);
        else await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    });
    await send();
    Object.assign(node, answering(500));
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(methods(node)).toHaveLength(4);
    expect(delays).toEqual([90, 180]);
  });

  test("succeeds when the retry does", async () => {
    let count = 0;
    const respond = () => {
      count += 1;
      return count === 1 ? { error: { code: -32603, message: "header not found" } } : { result: "0x5" };
    };
    expect(await createPoolOn([await startRpcNodeStub({ respond })]).send()).toBe("0x5");
  });

  test.each([400, 401, 403, 404])("does not retry an endpoint that responds with %i", async (status) => {
    const node = await startRpcNodeStub();
    const { send } = createPoolOn([node]);
    await send();
    Object.assign(node, answering(status));
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(methods(node)).toHaveLength(2);
  });

  test("that searches has no hedge, and no retry at the same endpoint", async () => {
    const [slow, other] = [await startRpcNodeStub({ respond: () => ({ result: [] }) }), await startRpcNodeStub()];
    const { send, hedges } = createPoolOn([slow, other]);
    hedges.areDue = true;
    await send("eth_getLogs");
    slow.delayMs = 150;
    expect(await send("eth_getLogs")).toEqual([]);
    slow.respond = () => ({ error: { code: -32005, message: "too many" } });
    other.respond = slow.respond;
    await expect(send("eth_getLogs")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect([methods(slow).length, methods(other).length]).toEqual([3, 1]);
  });

  test("that searches avoids an endpoint that has just failed", async () => {
    const respond: RpcNodeStub["respond"] = ({ method }) => ({ result: method === "eth_getLogs" ? [] : "0x1" });
    const [first, second] = [await startRpcNodeStub({ respond }), await startRpcNodeStub({ respond })];
    const { client, send } = createPoolOn([first, second]);
    const search = () =>
      client.getLogs(
        { filter: { address: "0x1", topics: [] }, range: { from: 1, to: 9 } },
        new AbortController().signal,
      );
    await search();
    first.intercept = answering(500).intercept;
    await send();
    const before = methods(first).length;
    await search();
    expect(methods(first)).toHaveLength(before);
    expect(methods(second)).toEqual(["eth_call", "eth_getLogs"]);
    first.intercept = () => false;
    await send();
    await search();
    expect(methods(first).slice(before)).toEqual(["eth_call", "eth_getLogs"]);
  });

  test("ends at once when its caller leaves, without counting as a failure", async () => {
    const [first, second] = [await startRpcNodeStub(), await startRpcNodeStub()];
    const { send, failures } = createPoolOn([first, second]);
    await send();
    Object.assign(first, hang);
    for (let round = 0; round < 6; round++) {
      const leaving = new AbortController();
      const rejected = expect(send("eth_call", leaving.signal)).rejects.toMatchObject(UNAVAILABLE_ERROR);
      await expect.poll(() => first.requests.length).toBe(2 + round);
      leaving.abort();
      await rejected;
    }
    expect(failures).toEqual([]);
    first.intercept = () => false;
    await send();
    expect(methods(second)).toEqual([]);
    await expect.poll(() => first.abortedRequests).toBe(6);
  });

  test.each([
    ["counts as a failure when the endpoint had more time than it needs", 1_500, ["did not answer in time"]],
    ["counts as none when it had less", 1_499, []],
  ])("that ends without a response %s", async (_, ms, expected) => {
    const node = await startRpcNodeStub();
    const { pool, send, clock, failures } = createPoolOn([node]);
    await send();
    Object.assign(node, hang);
    const leaving = new AbortController();
    const request = send("eth_call", leaving.signal);
    await vi.waitFor(() => expect(node.requests).toHaveLength(2), { timeout: 60_000 });
    clock.ms += ms;
    leaving.abort();
    await expect(request).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures.map(({ error }) => error)).toEqual(expected);
    expect(pool.state().endpoints[0]?.state).toBe(expected.length > 0 ? "failing" : "ok");
  });

  test("is repeated beside the late attempt, which is not cut off", async () => {
    const node = await startRpcNodeStub();
    const { send, hedges, failures } = createPoolOn([node]);
    await send();
    const late: (() => void)[] = [];
    node.intercept = ({ calls: [call], response }) =>
      Boolean(late.push(() => sendJson(response, { id: call?.id, result: "0xa" })));
    hedges.areDue = true;
    hedges.isPatienceOver = true;
    const repeated = send();
    await vi.waitFor(() => expect(late).toHaveLength(5), { timeout: 60_000 });
    expect(node.abortedRequests).toBe(0);
    late[0]?.();
    expect(await repeated).toBe("0xa");
    await vi.waitFor(() => expect(node.abortedRequests).toBe(4), { timeout: 60_000 });
    expect(failures).toEqual([]);
  });

  test("that is repeated at an endpoint which stays silent counts as one failure", async () => {
    const node = await startRpcNodeStub();
    const { send, clock, hedges, failures } = createPoolOn([node]);
    await send();
    Object.assign(node, hang);
    hedges.areDue = true;
    hedges.isPatienceOver = true;
    const leaving = new AbortController();
    const read = send("eth_call", leaving.signal);
    await vi.waitFor(() => expect(methods(node)).toHaveLength(1 + 5), { timeout: 60_000 });
    clock.ms += 2_000;
    leaving.abort();
    await expect(read).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "did not answer in time" }]);
  });

  test("of a caller that has already left is not sent", async () => {
    const node = await startRpcNodeStub();
    await expect(createPoolOn([node]).send("a", AbortSignal.abort())).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests).toEqual([]);
  });

  test("times out when no connection is made", async () => {
    const unreachable = new Agent({ connect: () => {} });
    const { send, failures, clock } = createPoolOn([await startRpcNodeStub()], {
      dispatcher: unreachable,
      callerTimeoutMs: 50,
    });
    const request = send();
    clock.ms += 50;
    await expect(request).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "did not answer in time" }]);
  });

  test("is neither retried nor counted as a failure once the pool closes", async () => {
    const closing = new AbortController();
    const dispatcher = new Agent();
    const node = await startRpcNodeStub(hang);
    const { send, failures } = createPoolOn([node], { closing: closing.signal, dispatcher });
    const pending = send();
    await vi.waitFor(() => expect(node.requests).toHaveLength(1), { timeout: 60_000 });
    closing.abort();
    await dispatcher.destroy();
    await expect(pending).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toEqual([]);
    expect(node.requests).toHaveLength(1);
  });

  test("leaves no listener on a long-lived signal", async () => {
    const { send } = createPoolOn([await startRpcNodeStub()]);
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, "addEventListener"), vi.spyOn(signal, "removeEventListener")];
    for (let round = 0; round < 3; round++) await send("a", signal);
    expect(added.mock.calls.length).toBeGreaterThan(0);
    expect(removed.mock.calls.length).toBe(added.mock.calls.length);
  });
});

describe("log searches", () => {
  const range = { from: 0, to: 9 };
  /** Starts a node that holds back its responses until the test sends them. */
  async function startHoldingNode() {
    const held: (() => void)[] = [];
    const node = await startRpcNodeStub();
    const pool = createPoolOn([node]);
    await pool.send();
    node.requests.length = 0;
    node.intercept = ({ calls, response }) => {
      if (calls[0]?.method !== "eth_getLogs") return false;
      held.push(() => sendJson(response, { id: calls[0]?.id, result: [] }));
      return true;
    };
    const search = (signal = new AbortController().signal) => pool.client.getLogs({ filter: logFilter, range }, signal);
    return { node, held, search, ...pool };
  }

  test("run 32 at a time, queue beyond that, and block no other reads", async () => {
    const { node, held, search, send } = await startHoldingNode();
    const all = Array.from({ length: 80 }, () => search());
    await vi.waitFor(() => expect(held).toHaveLength(32), { timeout: 60_000 });
    expect(await send("eth_gasPrice")).toBe("0x1");
    expect(methods(node)).toHaveLength(33);
    for (const expected of [64, 80]) {
      for (const respond of held.slice(-32)) respond();
      await vi.waitFor(() => expect(held).toHaveLength(expected), { timeout: 60_000 });
    }
    for (const respond of held.slice(-16)) respond();
    expect(await Promise.all(all)).toEqual(Array(80).fill({ result: [], range }));
  });

  test("that did not start in time fail and do not start later", async () => {
    const { held, search } = await startHoldingNode();
    const some = Array.from({ length: 32 }, () => search());
    await vi.waitFor(() => expect(held).toHaveLength(32), { timeout: 60_000 });
    const leaving = new AbortController();
    const late = [search(leaving.signal), search(AbortSignal.abort())];
    leaving.abort();
    for (const each of late) {
      await expect(each).rejects.toMatchObject({
        reason: "UPSTREAM_UNAVAILABLE",
        message: "the logs of optimism could not be searched in time",
      });
    }
    for (const answer of held) answer();
    await Promise.all(some);
    expect(held).toHaveLength(32);
  });
});
