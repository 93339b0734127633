import { describe, expect, test } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { sendJson } from "../../../support/stubs/http-stub.js";
import {
  answerStatus,
  disconnect,
  down,
  healthy,
  type NodeCall,
  type RpcNodeStub,
  rejecting,
  returning,
  startPool,
  UNAVAILABLE_ERROR,
  until,
} from "../support/rpc-node-stub.js";

const MINUTE = 60_000;
const chainId = "eth_chainId";
const refusal = { id: null, error: { code: -32600, message: "batch of more than 3 not allowed" } };

/** Answers each call by its method. */
const echo = { respond: ({ method }: NodeCall) => ({ result: method }) };
const echoOf = (...methods: readonly string[]) => methods.map((result) => ({ result }));

/** Intercepts batches only; `make` returns the response to their calls. */
const toBatches =
  (make: (calls: readonly NodeCall[]) => unknown, status = 200): RpcNodeStub["intercept"] =>
  ({ calls, isBatch, response }) => {
    if (isBatch) sendJson(response, make(calls), status);
    return isBatch;
  };
const respondCorrectly = (calls: readonly NodeCall[]) =>
  calls.map((call) => ({ id: call.id, result: call.method === chainId ? "0x1" : call.method }));
const sizesOf = (node: RpcNodeStub): number[] => node.requests.map(({ length }) => length);

describe("the chain id", () => {
  test("is read along with the first call, and again after 250 ms and after every failure: nodes may share an address", async () => {
    const { nodes, send, failures, clock } = await startPool([{}]);
    const [node] = nodes;
    expect(await send()).toBe("0x1");
    clock.ms += 249;
    expect(await send()).toBe("0x1");
    expect(node.requests).toEqual([[chainId, "eth_call"], ["eth_call"]]);
    clock.ms += 1;
    await send();
    expect(node.requests.at(-1)).toEqual([chainId, "eth_call"]);
    node.intercept = disconnect;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    Object.assign(node, { intercept: healthy, chainId: 10 });
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures.at(-1)).toMatchObject({ error: "serves another chain" });
  });

  test("is read beside a log search, which stays a separate request", async () => {
    const { nodes, send, clock } = await startPool([returning([])]);
    await send("eth_getLogs");
    clock.ms += 250;
    await send("eth_getLogs");
    expect(nodes[0].requests.slice(1).flat().sort()).toEqual([chainId, "eth_getLogs"]);
    expect(nodes[0].requests).toHaveLength(3);
  });

  test("shares a batch with a log search and other calls", async () => {
    const { nodes, batch, clock } = await startPool([returning([])]);
    await batch("eth_getLogs", "b");
    clock.ms += 250;
    await batch("eth_getLogs", "b");
    expect(nodes[0].requests).toEqual(Array(2).fill([chainId, "eth_getLogs", "b"]));
  });

  test("is read by each of several concurrent first requests, so that none waits for another", async () => {
    const { nodes, send } = await startPool([{ delayMs: 30 }]);
    const leaving = new AbortController();
    const pending = [send("a", leaving.signal), send("b"), send("c")].map((each) => each.catch(() => "left"));
    setTimeout(() => leaving.abort(), 10);
    expect(await Promise.all(pending)).toEqual(["left", "0x1", "0x1"]);
    await send("d");
    expect(nodes[0].requests.at(-1)).toEqual(["d"]);
  });

  test.each([
    ["a result", returning("0x2")],
    ["a revert", rejecting({ code: 3, message: "execution reverted" })],
  ])("if wrong, withholds %s; the endpoint is asked again after two seconds", async (_, behaviour) => {
    const { nodes, send, failures, clock } = await startPool([{ chainId: 10, ...behaviour }]);
    const [node] = nodes;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(failures).toMatchObject([{ error: "serves another chain" }]);
    Object.assign(node, { chainId: 1, ...returning("0x3") });
    clock.ms += 1_999;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests).toHaveLength(1);
    clock.ms += 1;
    expect(await send()).toBe("0x3");
  });

  test.each(["0x", "1", 1, null, "0x1g", ["0x1"]])("%j is rejected as a chain id", async (result) => {
    const { send } = await startPool([{ intercept: toBatches((calls) => calls.map(({ id }) => ({ id, result }))) }]);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });

  test("is read separately where an endpoint rejects batches", async () => {
    const { nodes, send, clock } = await startPool([{ chainId: 10, intercept: toBatches(() => refusal) }]);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    nodes[0].chainId = 1;
    clock.ms += 30_000;
    expect(await send()).toBe("0x1");
    expect(nodes[0].requests.slice(1)).toEqual(expect.arrayContaining([[chainId], ["eth_call"]]));
  });
});

describe("a batch", () => {
  test("is one request, and its outcomes have the order of its calls", async () => {
    const { nodes, batch } = await startPool([{ intercept: toBatches((calls) => respondCorrectly(calls).reverse()) }]);
    expect(await batch("a", "b", "c")).toEqual(echoOf("a", "b", "c"));
    expect(nodes[0].requests).toEqual([[chainId, "a", "b", "c"]]);
  });

  test("contains reverts beside results", async () => {
    const error = { code: 3, message: "execution reverted", data: "0x12" };
    const { batch } = await startPool([
      { respond: ({ method }) => (method === "eth_call" ? { error } : { result: "0x7" }) },
    ]);
    const [first, second] = await batch("eth_call", "eth_gasPrice");
    expect(first).toMatchObject({ revert: { code: 3, data: "0x12" } });
    expect((first as { revert: unknown }).revert).toBeInstanceOf(RevertError);
    expect(second).toEqual({ result: "0x7" });
  });

  test("without calls sends nothing", async () => {
    const { nodes, batch } = await startPool([{}]);
    expect(await batch()).toEqual([]);
    expect(nodes[0].requests).toEqual([]);
  });

  test("of one call to a verified endpoint is sent as an object", async () => {
    const { nodes, batch } = await startPool([{}]);
    await batch("a");
    nodes[0].intercept = toBatches(() => ({}), 500);
    expect(await batch("a")).toEqual([{ result: "0x1" }]);
  });

  test("uses every id once", async () => {
    const ids: number[] = [];
    const respond = ({ id }: NodeCall) => ({ result: `0x${ids.push(id)}` });
    const { batch, send } = await startPool([{ respond }]);
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
    const { nodes, batch, failures } = await startPool([
      { ...echo, intercept: toBatches((calls) => spoil(respondCorrectly(calls))) },
    ]);
    expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
    expect(nodes[0].requests.splice(0)).toEqual([[chainId, "a", "b"], [chainId], ["a"], ["b"]]);
    expect(await batch("a", "b", "c")).toEqual(echoOf("a", "b", "c"));
    expect(nodes[0].requests.splice(0)).toEqual([["a"], ["b"], ["c"]]);
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
    const good = method === "eth_getLogs" ? [] : method.includes("get") ? null : "0x1";
    const { send, failures } = await startPool(
      [answer, good].map((result) => ({ ...returning(result), head: result })),
    );
    expect(await send(method)).toEqual(good);
    expect(failures).toMatchObject([{ error: "returned an impossible result" }]);
  });

  test("is retried elsewhere as a whole when one of its calls is rejected", async () => {
    const error = { code: -32005, message: "secret-key is over its limit" };
    const { batch, failures } = await startPool([
      { respond: ({ method }) => (method === "b" ? { error } : { result: "bad" }) },
      echo,
    ]);
    expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
    expect(failures).toMatchObject([{ error: "answered JSON-RPC error -32005" }]);
    expect(JSON.stringify(failures)).not.toContain("secret-key");
  });
});

describe("an endpoint that rejects batches", () => {
  test.each([200, 400])(
    "from some time on with %i does not fail, although there is no other endpoint",
    async (status) => {
      const { nodes, batch, failures } = await startPool([echo]);
      await batch("a", "b");
      nodes[0].intercept = toBatches(() => refusal, status);
      nodes[0].requests.length = 0;
      expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
      await batch("a", "b");
      expect(nodes[0].requests).toEqual([["a", "b"], ["a"], ["b"], ["a"], ["b"]]);
      expect(failures).toEqual([]);
    },
  );

  test("by one error object over and over is not suspended", async () => {
    const { nodes, batch, failures, clock } = await startPool([echo, {}]);
    const [node, other] = nodes;
    const calls = ["a", "b", "c"];
    for (let round = 0; round < 10; round++) {
      node.intercept = healthy;
      await batch(...calls);
      node.intercept = toBatches(() => ({ id: null, error: { code: -32005, message: "too many requests" } }));
      expect(await batch(...calls)).toEqual(echoOf(...calls));
      // A limit of the rate passes soon.
      clock.ms += MINUTE / 2;
    }
    expect(node.requests.filter(({ length }) => length > 2)).toHaveLength(20);
    expect([failures, other.requests]).toEqual([[], []]);
  });

  test.each([
    ["a result that is not a list", { id: 1, result: "0x1" }],
    ["null", null],
  ])("with %s, after it has accepted some, counts as failing", async (_, answer) => {
    const { nodes, batch, failures } = await startPool([echo]);
    await batch("a", "b");
    nodes[0].intercept = toBatches(() => answer);
    expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
    expect(failures).toMatchObject([{ error: "returned no valid JSON-RPC response" }]);
  });

  test("from some time on with server errors is detected as well", async () => {
    const { nodes, batch } = await startPool([echo]);
    await batch("a", "b");
    nodes[0].intercept = (request) => request.calls.length > 1 && down(request);
    await expect(batch("a", "b")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
  });

  test("and fails single calls too does not get every call separately", async () => {
    const { nodes, batch } = await startPool([{ intercept: down }]);
    await expect(batch(..."abcdefgh")).rejects.toMatchObject(UNAVAILABLE_ERROR);
    // Three attempts, each with the batch and one of its calls.
    expect(nodes[0].requests).toHaveLength(6);
  });

  test.each<[string, RpcNodeStub["intercept"], number]>([
    ["one error object", toBatches(() => refusal), 10 * MINUTE],
    ["a list of one error", toBatches((calls) => [{ ...refusal, id: calls[0]?.id }]), 10 * MINUTE],
    ["an error for each call", toBatches((calls) => calls.map(({ id }) => ({ ...refusal, id }))), 10 * MINUTE],
    ["a result that is not a list", toBatches(() => ({ id: 1, result: "0x1" })), 10 * MINUTE],
    ["null", toBatches(() => null), 10 * MINUTE],
    ...[400, 404, 405, 413, 415, 422].map((status): [string, RpcNodeStub["intercept"], number] => [
      String(status),
      toBatches(() => refusal, status),
      10 * MINUTE,
    ]),
    // The error may have been about this call only.
    ["500", toBatches(() => refusal, 500), MINUTE / 2],
    ["501", toBatches(() => refusal, 501), MINUTE / 2],
  ])("with %s gets separate requests for a while", async (_, intercept, whileMs) => {
    const { nodes, batch, failures, clock } = await startPool([{ ...echo, intercept }]);
    const [node] = nodes;
    expect(await batch("a", "b")).toEqual(echoOf("a", "b"));
    expect(sizesOf(node)).toEqual([3, 1, 1, 1]);
    expect(failures).toEqual([]);

    // The rejected batch had three calls.
    clock.ms += whileMs - 1;
    await batch("a", "b", "c");
    // The chain id is read again.
    expect(sizesOf(node)).toEqual([3, 1, 1, 1, 1, 1, 1, 1]);
    node.requests.length = 0;
    clock.ms += 1;
    node.intercept = healthy;
    await batch("a", "b", "c");
    await batch("a", "b", "c");
    expect(node.requests).toEqual(Array(2).fill(["a", "b", "c"]));
  });

  test("of some size still gets smaller ones", async () => {
    const reject = toBatches(() => refusal, 500);
    const { nodes, batch, failures } = await startPool([
      { ...echo, intercept: (request) => request.calls.length > 3 && reject(request) },
    ]);
    await batch("a", "b");
    expect(await batch("a", "b", "c", "d")).toHaveLength(4);
    await batch("a", "b", "c");
    await batch("a", "b", "c", "d");
    expect(sizesOf(nodes[0])).toEqual([3, 4, 1, 1, 1, 1, 3, 3, 1]);
    expect(failures).toEqual([]);
  });

  test("gets at most 16 concurrent requests", async () => {
    const waiting: (() => void)[] = [];
    const { batch } = await startPool([
      {
        intercept({ isBatch, calls, response }) {
          if (isBatch) sendJson(response, refusal);
          else waiting.push(() => sendJson(response, respondCorrectly(calls)[0]));
          return true;
        },
      },
    ]);
    const methods = Array.from({ length: 40 }, (_, index) => `m${index}`);
    const outcomes = batch(...methods);
    // After the batch, the chain id is read alone.
    for (const concurrent of [1, 16, 16, 8]) {
      await until(() => expect(waiting).toHaveLength(concurrent));
      for (const respond of waiting.splice(0)) respond();
    }
    expect(await outcomes).toEqual(echoOf(...methods));
  });

  test("fails when it rejects a separate request too, and gets no further ones", async () => {
    const { nodes, batch, failures } = await startPool([
      { ...rejecting({ code: -32601 }), intercept: toBatches(() => refusal) },
      {},
    ]);
    await batch(...Array.from({ length: 100 }, (_, index) => `m${index}`));
    expect(nodes[0].requests.length).toBeLessThan(50);
    expect(failures).toMatchObject([{ error: "answered JSON-RPC error -32601" }]);
  });

  test.each([401, 403, 429])("is not one that responds with %i", async (status) => {
    const { nodes, send, failures } = await startPool([{ intercept: answerStatus(status) }, {}]);
    expect(await send()).toBe("0x1");
    expect(nodes[0].requests).toHaveLength(1);
    expect(failures).toMatchObject([{ error: expect.stringMatching(new RegExp(`^answered ${status}: `)) }]);
  });

  test("is not one that has accepted as large a batch before", async () => {
    const { nodes, batch } = await startPool([{}, {}]);
    await batch("a", "b");
    nodes[0].intercept = toBatches(() => ({}), 500);
    await batch("a", "b");
    expect(sizesOf(nodes[0])).toEqual([3, 2]);
  });
});
