import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import {
  answerJson,
  answerStatus,
  callsTo,
  createPoolOn,
  down,
  hang,
  healthy,
  never,
  type RpcNodeStub,
  rejecting,
  returning,
  startPool,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
  until,
} from "../support/rpc-node-stub.js";

describe("an endpoint pool", () => {
  test.each<[string, Partial<RpcNodeStub>, string]>([
    ["answers 500", { intercept: down }, "answered 500"],
    ["answers 429", { intercept: answerStatus(429) }, "answered 429: too many requests"],
    ["returns no JSON-RPC", { intercept: answerJson([]) }, "returned no valid JSON-RPC response"],
    ["answers another call", { intercept: answerJson({ id: 0, result: 1 }) }, "returned no valid JSON-RPC response"],
    ["is rate limited", rejecting({ code: -32005, message: "rate limit" }), "answered JSON-RPC error -32005"],
    ["returns too many bytes", returning(`0x${"0".repeat(10_000)}`), "answered more than 10000 bytes"],
    ["serves another chain", { chainId: 10 }, "serves another chain"],
  ])("fails over to the next endpoint when one %s", async (_, behaviour, problem) => {
    const { send, failures } = await startPool([behaviour, returning("0xb")]);
    expect(await send()).toBe("0xb");
    expect(failures).toMatchObject([{ chain: "optimism", method: "eth_call", error: problem }]);
    expect(JSON.stringify(failures)).not.toContain("secret-key");
  });

  test("names only the chain when no endpoint responds", async () => {
    const { send, failures } = await startPool([rejecting({ code: 1, message: "secret" })]);
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
    const { nodes, send } = await startPool([rejecting(error), {}]);
    // Repeatedly: a revert counts as a successful response.
    for (let round = 0; round < 6; round++) {
      const thrown = await send().catch((reason: unknown) => reason);
      expect(thrown).toBeInstanceOf(RevertError);
      expect(thrown).toMatchObject({ code: error.code, data: error.data });
    }
    expect(callsTo(nodes[1])).toEqual([]);
  });

  test("does not report a revert for a method that runs no contract", async () => {
    const { send } = await startPool([rejecting({ code: 3, message: "execution reverted" }), returning("0xb")]);
    expect(await send("eth_gasPrice")).toBe("0xb");
  });

  test("sends the user info of a URL as a header", async () => {
    const node = await startRpcNodeStub({
      intercept({ calls: [chainId, call], response }) {
        const { authorization } = response.req.headers;
        sendJson(response, [
          { id: chainId?.id, result: "0x1" },
          { id: call?.id, result: authorization },
        ]);
        return true;
      },
    });
    const { send } = createPoolOn([node], { urls: [node.url.replace("http://", "http://us%65r:p%40ss%zz@")] });
    expect(await send("web3_clientVersion")).toBe(`Basic ${Buffer.from("user:p@ss%zz").toString("base64")}`);
  });
});

describe("a read", () => {
  test("is sent at most three times, to different endpoints first", async () => {
    const { nodes, send } = await startPool([1, 2, 3, 4].map(() => ({ intercept: down })));
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    // The batch with the chain id is rejected; then the chain id alone is read, which fails too.
    expect(nodes.map((node) => callsTo(node).length)).toEqual([1, 1, 1, 0]);
  });

  test("retries the same endpoint after a random delay when there is no other", async () => {
    const delays: number[] = [];
    const { nodes, send } = await startPool([{}], {
      random: () => 0.9,
      async sleep(ms, signal, purpose) {
        if (purpose === "retry") delays.push(ms);
        else await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    });
    await send();
    nodes[0].intercept = down;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(callsTo(nodes[0])).toHaveLength(4);
    expect(delays).toEqual([90, 180]);
  });

  test("succeeds when the retry does", async () => {
    const answers = [{ error: { code: -32603, message: "header not found" } }, { result: "0x5" }];
    const { send } = await startPool([{ respond: () => answers.shift() ?? { result: "0x6" } }]);
    expect(await send()).toBe("0x5");
  });

  test.each([400, 401, 403, 404])("does not retry an endpoint that responds with %i", async (status) => {
    const { nodes, send } = await startPool([{}]);
    await send();
    nodes[0].intercept = answerStatus(status);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(callsTo(nodes[0])).toHaveLength(2);
  });

  test("that searches has no hedge, and no retry at the same endpoint", async () => {
    const { nodes, send, hedges } = await startPool([returning([]), {}]);
    const [slow, other] = nodes;
    hedges.areDue = true;
    await send("eth_getLogs");
    slow.delayMs = 150;
    expect(await send("eth_getLogs")).toEqual([]);
    for (const node of nodes) Object.assign(node, rejecting({ code: -32005, message: "too many" }));
    await expect(send("eth_getLogs")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect([callsTo(slow).length, callsTo(other).length]).toEqual([3, 1]);
  });

  test("that searches avoids an endpoint that has just failed", async () => {
    const respond: RpcNodeStub["respond"] = ({ method }) => ({ result: method === "eth_getLogs" ? [] : "0x1" });
    const { nodes, getLogs, send } = await startPool([{ respond }, { respond }]);
    const [first, second] = nodes;
    const range = { from: 1, to: 9 };
    await getLogs({ range });
    first.intercept = down;
    await send();
    const before = callsTo(first).length;
    await getLogs({ range });
    expect(callsTo(first)).toHaveLength(before);
    expect(callsTo(second)).toEqual(["eth_call", "eth_getLogs"]);
    first.intercept = healthy;
    await send();
    await getLogs({ range });
    expect(callsTo(first).slice(before)).toEqual(["eth_call", "eth_getLogs"]);
  });

  test("ends at once when its caller leaves, without counting as a failure", async () => {
    const { nodes, send, failures } = await startPool([{}, {}]);
    const [first, second] = nodes;
    await send();
    first.intercept = hang;
    for (let round = 0; round < 6; round++) {
      const leaving = new AbortController();
      const rejected = expect(send("eth_call", leaving.signal)).rejects.toMatchObject(UNAVAILABLE_ERROR);
      await until(() => expect(first.requests).toHaveLength(2 + round));
      leaving.abort();
      await rejected;
    }
    expect(failures).toEqual([]);
    first.intercept = healthy;
    await send();
    expect(callsTo(second)).toEqual([]);
    await until(() => expect(first.abortedRequests).toBe(6));
  });

  test.each([
    ["counts as a failure when the endpoint had more time than it needs", 1_500, ["did not answer in time"], "failing"],
    ["counts as none when it had less", 1_499, [], "ok"],
  ])("that ends without a response %s", async (_, ms, errors, state) => {
    const { nodes, states, send, clock, failures } = await startPool([{}]);
    await send();
    nodes[0].intercept = hang;
    const leaving = new AbortController();
    const request = send("eth_call", leaving.signal);
    await until(() => expect(nodes[0].requests).toHaveLength(2));
    clock.ms += ms;
    leaving.abort();
    await expect(request).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures.map(({ error }) => error)).toEqual(errors);
    expect(states()).toEqual([state]);
  });

  test("is repeated beside the late attempt, which is not cut off", async () => {
    const { nodes, send, hedges, failures } = await startPool([{}]);
    const [node] = nodes;
    await send();
    const late: (() => void)[] = [];
    node.intercept = ({ calls: [call], response }) =>
      Boolean(late.push(() => sendJson(response, { id: call?.id, result: "0xa" })));
    hedges.areDue = true;
    hedges.isPatienceOver = true;
    const repeated = send();
    await until(() => expect(late).toHaveLength(5));
    expect(node.abortedRequests).toBe(0);
    late[0]?.();
    expect(await repeated).toBe("0xa");
    await until(() => expect(node.abortedRequests).toBe(4));
    expect(failures).toEqual([]);
  });

  test("that is repeated at an endpoint which stays silent counts as one failure", async () => {
    const { nodes, send, clock, hedges, failures } = await startPool([{}]);
    await send();
    nodes[0].intercept = hang;
    hedges.areDue = true;
    hedges.isPatienceOver = true;
    const leaving = new AbortController();
    const read = send("eth_call", leaving.signal);
    await until(() => expect(callsTo(nodes[0])).toHaveLength(1 + 5));
    clock.ms += 2_000;
    leaving.abort();
    await expect(read).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "did not answer in time" }]);
  });

  test("of a caller that has already left is not sent", async () => {
    const { nodes, send } = await startPool([{}]);
    await expect(send("a", AbortSignal.abort())).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(nodes[0].requests).toEqual([]);
  });

  test("times out when no connection is made", async () => {
    const dispatcher = new Agent({ connect: () => {} });
    const { send, failures, clock } = await startPool([{}], { dispatcher, callerTimeoutMs: 50 });
    const request = send();
    clock.ms += 50;
    await expect(request).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "did not answer in time" }]);
  });

  test("is neither retried nor counted as a failure once the pool closes", async () => {
    const closing = new AbortController();
    const dispatcher = new Agent();
    const { nodes, send, failures } = await startPool([{ intercept: hang }], { closing: closing.signal, dispatcher });
    const pending = send();
    await until(() => expect(nodes[0].requests).toHaveLength(1));
    closing.abort();
    await dispatcher.destroy();
    await expect(pending).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toEqual([]);
    expect(nodes[0].requests).toHaveLength(1);
  });

  test("leaves no listener on a long-lived signal", async () => {
    const { send } = await startPool([{}]);
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
    const pool = await startPool([{}]);
    await pool.send();
    const [node] = pool.nodes;
    node.requests.length = 0;
    node.intercept = ({ calls: [call], response }) =>
      call?.method === "eth_getLogs" && held.push(() => sendJson(response, { id: call.id, result: [] })) > 0;
    return { ...pool, node, held, search: (signal = never) => pool.getLogs({ range }, signal) };
  }

  test("run 32 at a time, queue beyond that, and block no other reads", async () => {
    const { node, held, search, send } = await startHoldingNode();
    const all = Array.from({ length: 80 }, () => search());
    await until(() => expect(held).toHaveLength(32));
    expect(await send("eth_gasPrice")).toBe("0x1");
    expect(callsTo(node)).toHaveLength(33);
    for (const expected of [64, 80]) {
      for (const respond of held.slice(-32)) respond();
      await until(() => expect(held).toHaveLength(expected));
    }
    for (const respond of held.slice(-16)) respond();
    expect(await Promise.all(all)).toEqual(Array(80).fill({ result: [], range }));
  });

  test("that did not start in time fail and do not start later", async () => {
    const { held, search } = await startHoldingNode();
    const some = Array.from({ length: 32 }, () => search());
    await until(() => expect(held).toHaveLength(32));
    const leaving = new AbortController();
    const late = [search(leaving.signal), search(AbortSignal.abort())];
    leaving.abort();
    const message = "the logs of optimism could not be searched in time";
    for (const each of late) await expect(each).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message });
    for (const answer of held) answer();
    await Promise.all(some);
    expect(held).toHaveLength(32);
  });
});
