import { expect, test, vi } from "vitest";
import type { ChainClient, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { joinCalls } from "../../../../src/transfers/details/join-calls.js";
import {
  createChainAccess,
  createTransferChainStub,
  repeatedByteAddress,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const { signal } = new AbortController();
const own = new AbortController().signal;

/** Joins the calls to Base; `respond` gives the outcomes of a batch. */
function setup(respond: (methods: readonly string[]) => Promise<readonly RpcCallResult[]>) {
  const base = createTransferChainStub("base");
  const sendBatch = vi.fn<ChainClient["sendBatch"]>((calls) => respond(calls.map(({ method }) => method)));
  const client = { ...base.client, cacheKey: {}, sendBatch };
  const chains = joinCalls(createChainAccess([{ ...base, client }], ["base"]), signal);
  return { chains, client, sendBatch };
}

const echo = async (methods: readonly string[]) => methods.map((method) => ({ result: `${method} result` }));

test("calls of one turn go out in one batch with the common signal, and each gets its result", async () => {
  const { chains, sendBatch } = setup(echo);
  const onRequest = vi.fn();
  const validate = vi.fn();
  const [first, second] = [chains.getClient("base"), chains.getClient("base")];
  expect(await Promise.all([first.send("a", [1], own), second.send("b", [2], own, validate, onRequest)])).toEqual([
    "a result",
    "b result",
  ]);
  await first.send("c", [], own);
  expect(sendBatch.mock.calls.map(([calls, used]) => [calls.map(({ method }) => method), used === signal])).toEqual([
    [["a", "b"], true],
    [["c"], true],
  ]);
  expect(sendBatch.mock.calls[0]?.[0][1]).toEqual({ method: "b", params: [2], validate, onRequest });
});

test("a call that reverts, or that has no outcome, fails alone", async () => {
  const revert = Object.assign(new Error("reverted"), { data: "0x" }) as never;
  const { chains } = setup(async () => [{ revert }, { result: 2 }]);
  const client = chains.getClient("base");
  const outcomes = await Promise.allSettled(["a", "b", "c"].map((method) => client.send(method, [], own)));
  expect(outcomes).toEqual([
    { status: "rejected", reason: revert },
    { status: "fulfilled", value: 2 },
    { status: "rejected", reason: new Error("the call has no outcome") },
  ]);
});

test("a batch that fails fails its calls, but not those of another", async () => {
  const { chains } = setup((methods) =>
    methods.includes("0") ? Promise.reject(unavailableError("base")) : echo(methods),
  );
  const client = chains.getClient("base");
  const calls = Array.from({ length: 21 }, (_, index) => client.send(String(index), [], own));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.slice(0, 20)).toEqual(Array(20).fill({ status: "rejected", reason: unavailableError("base") }));
  expect(outcomes[20]).toEqual({ status: "fulfilled", value: "20 result" });
});

test("batches and log searches pass as they are, and the chain is the same", async () => {
  const { chains, client, sendBatch } = setup(echo);
  const joined = chains.getClient("base");
  const getLogs = vi.spyOn(client, "getLogs");
  const calls = [{ method: "a", params: [] }];
  expect(await joined.sendBatch(calls, own)).toEqual([{ result: "a result" }]);
  expect(sendBatch).toHaveBeenCalledWith(calls, own);
  const search = [{ address: repeatedByteAddress("b1"), topics: [] }, { from: 0, to: 9 }, true, own, vi.fn()] as const;
  expect(await joined.getLogs(...search)).toEqual({ result: [], range: { from: 0, to: 9 } });
  expect(getLogs).toHaveBeenCalledWith(...search);
  expect([joined.slug, joined.cacheKey]).toEqual(["base", client.cacheKey]);
  expect([chains.hasCustomEndpoint("base"), chains.hasCustomEndpoint("linea")]).toEqual([true, false]);
});
