import { describe, expect, test } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import {
  createPoolOn,
  type NodeCall,
  type RpcNodeStub,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
} from "../support/rpc-node-stub.js";

const methodAsResult = ({ method }: NodeCall) => ({ result: method });
const chainId = "eth_chainId";

/** Intercepts batches only; `make` returns the response to their calls. */
const toBatches =
  (make: (calls: readonly NodeCall[]) => unknown, status = 200): RpcNodeStub["intercept"] =>
  ({ calls, isBatch, response }) => {
    if (isBatch) sendJson(response, make(calls), status);
    return isBatch;
  };
const respondCorrectly = (calls: readonly NodeCall[]) =>
  calls.map((call) => ({ id: call.id, result: call.method === chainId ? "0x1" : call.method }));

describe("the chain id", () => {
  test("is read along with the first call only", async () => {
    const node = await startRpcNodeStub();
    const { send } = createPoolOn([node]);
    expect(await send()).toBe("0x1");
    expect(await send()).toBe("0x1");
    expect(node.requests).toEqual([[chainId, "eth_call"], ["eth_call"]]);
  });

  test("is read again after 250 ms and after every failure, because several nodes may share an address", async () => {
    const node = await startRpcNodeStub();
    const { send, failures, clock } = createPoolOn([node]);
    await send();
    clock.ms += 249;
    await send();
    expect(node.requests.at(-1)).toEqual(["eth_call"]);
    clock.ms += 1;
    await send();
    expect(node.requests.at(-1)).toEqual([chainId, "eth_call"]);
    node.intercept = ({ response }) => Boolean(response.destroy());
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    node.intercept = () => false;
    node.chainId = 10;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures.at(-1)).toMatchObject({ error: "serves another chain" });
  });

  test("is read beside a log search, which stays a separate request", async () => {
    const node = await startRpcNodeStub({ respond: () => ({ result: [] }) });
    const { send, clock } = createPoolOn([node]);
    await send("eth_getLogs");
    clock.ms += 250;
    await send("eth_getLogs");
    expect(node.requests.slice(1).flat().sort()).toEqual([chainId, "eth_getLogs"]);
    expect(node.requests).toHaveLength(3);
  });

  test("shares a batch with a log search and other calls", async () => {
    const node = await startRpcNodeStub({ respond: () => ({ result: [] }) });
    const { batch, clock } = createPoolOn([node]);
    await batch("eth_getLogs", "b");
    clock.ms += 250;
    await batch("eth_getLogs", "b");
    expect(node.requests).toEqual([
      [chainId, "eth_getLogs", "b"],
      [chainId, "eth_getLogs", "b"],
    ]);
  });

  test("is read by each of several concurrent first requests, so that none waits for another", async () => {
    const node = await startRpcNodeStub({ delayMs: 30 });
    const { send } = createPoolOn([node]);
    const leaving = new AbortController();
    const pending = [send("a", leaving.signal), send("b"), send("c")].map((each) => each.catch(() => "left"));
    setTimeout(() => leaving.abort(), 10);
    expect(await Promise.all(pending)).toEqual(["left", "0x1", "0x1"]);
    await send("d");
    expect(node.requests.at(-1)).toEqual(["d"]);
  });

  test.each([
    ["a result", () => ({ result: "0x2" })],
    ["a revert", () => ({ error: { code: 3, message: "execution reverted" } })],
  ])("if wrong, withholds %s; the endpoint is asked again after two seconds", async (_, respond) => {
    const node = await startRpcNodeStub({ chainId: 10, respond });
    const { send, failures, clock } = createPoolOn([node]);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "serves another chain" }]);
    node.chainId = 1;
    node.respond = () => ({ result: "0x3" });
    clock.ms += 1_999;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests).toHaveLength(1);
    clock.ms += 1;
    expect(await send()).toBe("0x3");
  });

  test.each(["0x", "1", 1, null, "0x1g", ["0x1"]])("%j is rejected as a chain id", async (answer) => {
    const intercept = toBatches((calls) => calls.map(({ id }) => ({ id, result: answer })));
    await expect(createPoolOn([await startRpcNodeStub({ intercept })]).send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });

  test("is read separately where an endpoint rejects batches", async () => {
    const node = await startRpcNodeStub({ chainId: 10, intercept: toBatches(() => ({ error: { code: -32600 } })) });
    const { send, clock } = createPoolOn([node]);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    node.chainId = 1;
    clock.ms += 30_000;
    expect(await send()).toBe("0x1");
    expect(node.requests.slice(1).map((methods) => methods.join())).toEqual(
      expect.arrayContaining([chainId, "eth_call"]),
    );
  });
});

describe("a batch", () => {
  test("is one request, and its outcomes have the order of its calls", async () => {
    const node = await startRpcNodeStub({ intercept: toBatches((calls) => respondCorrectly(calls).reverse()) });
    const { batch } = createPoolOn([node]);
    expect(await batch("a", "b", "c")).toEqual([{ result: "a" }, { result: "b" }, { result: "c" }]);
    expect(node.requests).toEqual([[chainId, "a", "b", "c"]]);
  });

  test("contains reverts beside results", async () => {
    const error = { code: 3, message: "execution reverted", data: "0x12" };
    const node = await startRpcNodeStub({
      respond: ({ method }) => (method === "eth_call" ? { error } : { result: "0x7" }),
    });
    const [first, second] = await createPoolOn([node]).batch("eth_call", "eth_gasPrice");
    expect(first).toMatchObject({ revert: { code: 3, data: "0x12" } });
    expect((first as { revert: unknown }).revert).toBeInstanceOf(RevertError);
    expect(second).toEqual({ result: "0x7" });
  });

  test("without calls sends nothing", async () => {
    const node = await startRpcNodeStub();
    expect(await createPoolOn([node]).batch()).toEqual([]);
    expect(node.requests).toEqual([]);
  });

  test("of one call to a verified endpoint is sent as an object", async () => {
    const node = await startRpcNodeStub();
    const { batch } = createPoolOn([node]);
    await batch("a");
    node.intercept = ({ isBatch, response }) => {
      if (isBatch) sendJson(response, {}, 500);
      return isBatch;
    };
    expect(await batch("a")).toEqual([{ result: "0x1" }]);
  });

  test("uses every id once", async () => {
    const ids: number[] = [];
    const node = await startRpcNodeStub({
      respond: ({ id }) => {
        ids.push(id);
        return { result: "0x1" };
      },
    });
    const { batch, send } = createPoolOn([node]);
    await Promise.all([batch("a", "b"), batch("c", "d"), send()]);
    expect(new Set(ids).size).toBe(5);
  });

  const bad: readonly [string, (answers: { id: number; result: unknown }[]) => unknown][] = [
    ["without an answer to one call", (answers) => answers.slice(1)],
    ["without any", () => []],
    ["with one twice", ([first, ...rest]) => [first, first, ...rest.slice(1)]],
    ["with one too many", (answers) => [...answers, { id: 99_999, result: 1 }]],
    ["with a foreign id", (answers) => [...answers.slice(1), { id: 99_999, result: 1 }]],
    ["with an id as text", ([first, ...rest]) => [{ ...first, id: String(first?.id) }, ...rest]],
    ["with null in place of one", (answers) => [null, ...answers.slice(1)]],
    ["with a number in place of one", (answers) => [1, ...answers.slice(1)]],
    ["with one that has no result", ([first, ...rest]) => [{ id: first?.id }, ...rest]],
  ];
  test.each(bad)("%s is rejected, and the calls are sent separately", async (_, spoil) => {
    const node = await startRpcNodeStub({
      respond: methodAsResult,
      intercept: toBatches((calls) => spoil(respondCorrectly(calls))),
    });
    const { batch, failures } = createPoolOn([node]);
    expect(await batch("a", "b")).toEqual([{ result: "a" }, { result: "b" }]);
    expect(node.requests.splice(0)).toEqual([[chainId, "a", "b"], [chainId], ["a"], ["b"]]);
    expect(await batch("a", "b", "c")).toEqual([{ result: "a" }, { result: "b" }, { result: "c" }]);
    expect(node.requests.splice(0)).toEqual([["a"], ["b"], ["c"]]);
    expect(failures).toEqual([]);
  });

  test.each([
    ["eth_gasPrice", null],
    ["eth_gasPrice", `0x${"f".repeat(33)}`],
    ["eth_estimateGas", 21_000],
    ["eth_call", null],
    ["eth_call", ["0x"]],
    ["eth_call", "0xzz"],
    ["eth_getLogs", null],
    ["eth_getLogs", {}],
    ["eth_getBlockByNumber", []],
    ["eth_getTransactionReceipt", "0x"],
  ])("of %s with the result %j is retried at the next endpoint", async (method, answer) => {
    const spoilt = await startRpcNodeStub({ respond: () => ({ result: answer }), head: answer });
    const good = method === "eth_getLogs" ? [] : method.includes("get") ? null : "0x1";
    const { send, failures } = createPoolOn([
      spoilt,
      await startRpcNodeStub({ respond: () => ({ result: good }), head: good }),
    ]);
    expect(await send(method)).toEqual(good);
    expect(failures).toMatchObject([{ error: "returned an impossible result" }]);
  });

  test("is retried elsewhere as a whole when one of its calls is rejected", async () => {
    const error = { code: -32005, message: "secret-key is over its limit" };
    const node = await startRpcNodeStub({ respond: ({ method }) => (method === "b" ? { error } : { result: "bad" }) });
    const { batch, failures } = createPoolOn([node, await startRpcNodeStub({ respond: methodAsResult })]);
    expect(await batch("a", "b")).toEqual([{ result: "a" }, { result: "b" }]);
    expect(failures).toMatchObject([{ error: "answered JSON-RPC error -32005" }]);
    expect(JSON.stringify(failures)).not.toContain("secret-key");
  });
});

describe("an endpoint that rejects batches", () => {
  test.each([200, 400])(
    "from some time on with %i does not fail, although there is no other endpoint",
    async (status) => {
      const node = await startRpcNodeStub({ respond: methodAsResult });
      const { batch, failures } = createPoolOn([node]);
      await batch("a", "b");
      node.intercept = toBatches(() => refusal, status);
      const { length } = node.requests;
      expect(await batch("a", "b")).toEqual([{ result: "a" }, { result: "b" }]);
      await batch("a", "b");
      expect(node.requests.slice(length)).toEqual([["a", "b"], ["a"], ["b"], ["a"], ["b"]]);
      expect(failures).toEqual([]);
    },
  );

  test("by one error object over and over is not suspended", async () => {
    const [node, other] = [await startRpcNodeStub({ respond: methodAsResult }), await startRpcNodeStub()];
    const { batch, failures, clock } = createPoolOn([node, other]);
    const calls = ["a", "b", "c"];
    for (let round = 0; round < 10; round++) {
      node.intercept = () => false;
      await batch(...calls);
      node.intercept = toBatches(() => ({ id: null, error: { code: -32005, message: "too many requests" } }));
      expect(await batch(...calls)).toEqual(calls.map((result) => ({ result })));
      // A limit of the rate passes soon.
      clock.ms += minute / 2;
    }
    expect(node.requests.filter(({ length }) => length > 2)).toHaveLength(20);
    expect([failures, other.requests]).toEqual([[], []]);
  });

  test.each([
    ["a result that is not a list", { id: 1, result: "0x1" }],
    ["null", null],
  ])("with %s, after it has accepted some, counts as failing", async (_, answer) => {
    const node = await startRpcNodeStub({ respond: methodAsResult });
    const { batch, failures } = createPoolOn([node]);
    await batch("a", "b");
    node.intercept = toBatches(() => answer);
    expect(await batch("a", "b")).toEqual([{ result: "a" }, { result: "b" }]);
    expect(failures).toMatchObject([{ error: "returned no valid JSON-RPC response" }]);
  });

  test("from some time on with server errors is detected as well", async () => {
    const node = await startRpcNodeStub({ respond: methodAsResult });
    const { batch } = createPoolOn([node]);
    await batch("a", "b");
    node.intercept = ({ calls, response }) => (calls.length > 1 ? Boolean(response.writeHead(500).end()) : false);
    await expect(batch("a", "b")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(await batch("a", "b")).toEqual([{ result: "a" }, { result: "b" }]);
  });

  test("and fails single calls too does not get every call separately", async () => {
    const node = await startRpcNodeStub({ intercept: ({ response }) => Boolean(response.writeHead(500).end()) });
    await expect(createPoolOn([node]).batch(..."abcdefgh")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    // Three attempts, each with the batch and one of its calls.
    expect(node.requests).toHaveLength(6);
  });

  const refusal = { id: null, error: { code: -32600, message: "batch of more than 3 not allowed" } };
  const minute = 60_000;
  test.each<[string, RpcNodeStub["intercept"], number]>([
    ["one error object", toBatches(() => refusal), 10 * minute],
    ["a list of one error", toBatches((calls) => [{ ...refusal, id: calls[0]?.id }]), 10 * minute],
    ["an error for each call", toBatches((calls) => calls.map(({ id }) => ({ ...refusal, id }))), 10 * minute],
    ["a result that is not a list", toBatches(() => ({ id: 1, result: "0x1" })), 10 * minute],
    ["null", toBatches(() => null), 10 * minute],
    ...[400, 404, 405, 413, 415, 422].map((status): [string, RpcNodeStub["intercept"], number] => [
      String(status),
      toBatches(() => refusal, status),
      10 * minute,
    ]),
    // The error may have been about this call only.
    ["500", toBatches(() => refusal, 500), minute / 2],
    ["501", toBatches(() => refusal, 501), minute / 2],
  ])("with %s gets separate requests for a while", async (_, intercept, whileMs) => {
    const node = await startRpcNodeStub({ intercept, respond: methodAsResult });
    const { batch, failures, clock } = createPoolOn([node]);
    const expected = [{ result: "a" }, { result: "b" }];
    expect(await batch("a", "b")).toEqual(expected);
    expect(node.requests.map(({ length }) => length)).toEqual([3, 1, 1, 1]);
    expect(failures).toEqual([]);

    // The rejected batch had three calls.
    clock.ms += whileMs - 1;
    await batch("a", "b", "c");
    // The chain id is read again.
    expect(node.requests.splice(0).map(({ length }) => length)).toEqual([3, 1, 1, 1, 1, 1, 1, 1]);
    clock.ms += 1;
    node.intercept = () => false;
    await batch("a", "b", "c");
    expect(node.requests.splice(0)).toEqual([["a", "b", "c"]]);
    await batch("a", "b", "c");
    expect(node.requests).toEqual([["a", "b", "c"]]);
  });

  test("of some size still gets smaller ones", async () => {
    const node = await startRpcNodeStub({ respond: methodAsResult });
    node.intercept = ({ calls, response }) => {
      if (calls.length > 3) sendJson(response, refusal, 500);
      return calls.length > 3;
    };
    const { batch, failures } = createPoolOn([node]);
    await batch("a", "b");
    expect(await batch("a", "b", "c", "d")).toHaveLength(4);
    await batch("a", "b", "c");
    await batch("a", "b", "c", "d");
    expect(node.requests.map(({ length }) => length)).toEqual([3, 4, 1, 1, 1, 1, 3, 3, 1]);
    expect(failures).toEqual([]);
  });

  test("gets at most 16 concurrent requests", async () => {
    const concurrent: number[] = [];
    const waiting: (() => void)[] = [];
    const node = await startRpcNodeStub({ respond: methodAsResult });
    node.intercept = ({ isBatch, calls, response }) => {
      if (isBatch) sendJson(response, refusal);
      else {
        waiting.push(() => sendJson(response, respondCorrectly(calls)[0]));
        // After the batch the chain id is read alone, then 16 at a time, of which none is answered before all are there.
        const isComplete = [1, 17, 33, 41].includes(node.requests.flat().length - 41);
        if (isComplete) concurrent.push(waiting.length);
        if (isComplete) for (const respond of waiting.splice(0)) respond();
      }
      return true;
    };
    const methods = Array.from({ length: 40 }, (_, index) => `m${index}`);
    expect(await createPoolOn([node]).batch(...methods)).toEqual(methods.map((result) => ({ result })));
    expect(concurrent).toEqual([1, 16, 16, 8]);
  });

  test("gets no further requests when one of them fails", async () => {
    const node = await startRpcNodeStub({
      intercept: toBatches(() => refusal),
      respond: () => ({ error: { code: -32601 } }),
    });
    const { batch } = createPoolOn([node, await startRpcNodeStub()]);
    await batch(...Array.from({ length: 100 }, (_, index) => `m${index}`));
    expect(node.requests.length).toBeLessThan(50);
  });

  test.each([401, 403, 429])("is not one that responds with %i", async (status) => {
    const node = await startRpcNodeStub({ intercept: toBatches(() => ({}), status) });
    const { send, failures } = createPoolOn([node, await startRpcNodeStub()]);
    expect(await send()).toBe("0x1");
    expect(node.requests).toHaveLength(1);
    expect(failures).toMatchObject([{ error: expect.stringMatching(new RegExp(`^answered ${status}: `)) }]);
  });

  test("is not one that has accepted as large a batch before", async () => {
    const node = await startRpcNodeStub();
    const { batch } = createPoolOn([node, await startRpcNodeStub()]);
    await batch("a", "b");
    node.intercept = toBatches(() => ({}), 500);
    await batch("a", "b");
    expect(node.requests.map(({ length }) => length)).toEqual([3, 2]);
  });

  test("fails when it rejects separate requests too", async () => {
    const node = await startRpcNodeStub({
      intercept: toBatches(() => refusal),
      respond: () => ({ error: { code: -32601 } }),
    });
    const { batch, failures } = createPoolOn([node, await startRpcNodeStub()]);
    expect(await batch("a", "b")).toHaveLength(2);
    expect(failures).toMatchObject([{ error: "answered JSON-RPC error -32601" }]);
  });
});
