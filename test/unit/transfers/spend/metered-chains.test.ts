import { describe, expect, test } from "vitest";
import { limitOperatorRequests, meterChains, type SearchTurn } from "../../../../src/transfers/spend/metered-chains.js";
import {
  createChainAccess,
  createTransferChainStub,
  repeatedByteAddress,
  repeatedByteHash,
} from "../../../support/stubs/transfer-fixtures.js";

const { signal } = new AbortController();
const filter = { address: repeatedByteAddress("b1"), topics: [] };
const range = { from: 0, to: 9 };

/** A metered chain with what was spent so far; requests beyond `limit` are prevented. */
function setup(takeTurn?: SearchTurn) {
  const chain = createTransferChainStub("base");
  const state = { limit: Number.POSITIVE_INFINITY };
  const spent: string[] = [];
  const chains = meterChains(
    createChainAccess([chain], ["base"]),
    {
      spend(slug, purpose) {
        if (spent.length >= state.limit) throw new Error("spent");
        spent.push(`${slug} ${purpose}`);
      },
    },
    takeTurn,
  );
  return { chain, chains, client: chains.getClient("base"), spent, state };
}

describe("a metered chain", () => {
  test.each([
    ["eth_call", "call"],
    ["eth_getBlockByHash", "block"],
    ["eth_getBlockByNumber", "block"],
    ["eth_getTransactionByHash", "transaction"],
    ["eth_getTransactionReceipt", "receipt"],
    ["eth_gasPrice", "other"],
  ])("spends a request of its purpose: %s", async (method, purpose) => {
    const { client, spent } = setup();
    // The stub has no gas price.
    await client.send(method, [repeatedByteHash("01")], signal).catch(() => {});
    expect(spent).toEqual([`base ${purpose}`]);
  });

  test("sends batches, each of which is spent, and log searches, in the turn of the chain", async () => {
    const turns: string[] = [];
    const { chain, client, spent } = setup((slug, turnSignal, search) => {
      turns.push(`${slug} ${turnSignal === signal}`);
      return search();
    });
    const calls = [1, 2].map(() => ({ method: "eth_getTransactionReceipt", params: [repeatedByteHash("01")] }));
    expect(await client.sendBatch(calls, signal)).toEqual([{ result: null }, { result: null }]);
    expect(turns).toEqual([]);
    expect(await client.getLogs({ filter, range }, signal)).toEqual({ result: [], range });
    expect(spent).toEqual(["base receipt", "base logs"]);
    expect(turns).toEqual(["base true"]);
    expect(chain.methods).toEqual(["eth_getTransactionReceipt eth_getTransactionReceipt", "eth_getLogs"]);
  });

  test("sends nothing that cannot be spent", async () => {
    const { chain, client, state } = setup();
    state.limit = 0;
    const call = { method: "eth_call", params: [{ to: filter.address, data: "0x" }] };
    await expect(client.send(call.method, call.params, signal)).rejects.toThrow("spent");
    await expect(client.sendBatch([call], signal)).rejects.toThrow("spent");
    await expect(client.getLogs({ filter, range }, signal)).rejects.toThrow("spent");
    expect(chain.methods).toEqual([]);
  });

  test("tells the one that asks of each request", async () => {
    const { client } = setup();
    let requests = 0;
    const onRequest = () => {
      requests += 1;
    };
    const call = { method: "eth_getTransactionReceipt", params: [repeatedByteHash("01")] };
    await client.send(call.method, call.params, signal, { onRequest });
    await client.sendBatch([{ ...call, onRequest }], signal);
    await client.getLogs({ filter, range, onRequest }, signal);
    expect(requests).toBe(3);
  });
});

test("requests to the operator's endpoints are limited over all chains, those to a caller's own are not", async () => {
  const stubs = ["base", "optimism", "linea"].map((slug) => createTransferChainStub(slug));
  const chains = limitOperatorRequests(
    createChainAccess(stubs, ["linea"]),
    3,
    (slug) => new Error(`no more of ${slug}`),
  );
  const search = (slug: string) => chains.getClient(slug).getLogs({ filter, range }, signal);
  for (const slug of ["linea", "base", "optimism", "linea", "base"]) await search(slug);
  await expect(search("optimism")).rejects.toThrow("no more of optimism");
  await expect(search("base")).rejects.toThrow("no more of base");
  await search("linea");
  expect(stubs.map(({ methods }) => methods.length)).toEqual([2, 1, 3]);
});
