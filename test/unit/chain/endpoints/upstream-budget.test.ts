import { setImmediate as nextTurn } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, test } from "vitest";
import { ChainClients } from "../../../../src/chain/chains.js";
import {
  MAX_REQUESTS_IN_FLIGHT,
  MAX_RESPONSE_MEMORY_BYTES,
  tooManyRequestsError,
  UpstreamBudget,
} from "../../../../src/chain/endpoints/upstream-budget.js";
import { hang, holdResponses, returning, startPool, startRpcNodeStub } from "../support/rpc-node-stub.js";

const OVERLOADED = { reason: "OVERLOADED", retryAfterSeconds: 1 };
const CALLERS = 10_000;

/** Begins requests to an endpoint until no more may begin. */
function fill(budget: UpstreamBudget, endpoint: string): void {
  while (budget.hasCapacityFor(endpoint)) budget.openRequest(endpoint);
}

describe("the budget of requests in flight", () => {
  test("bounds what ten thousand callers send to endpoints that hang, over all chains", async () => {
    const node = await startRpcNodeStub({ intercept: hang });
    const slugs = ["ethereum", "optimism", "arbitrum", "polygon"];
    const chains = new ChainClients({
      networks: { mainnet: new Map(slugs.map((slug) => [slug, { chainId: 1, urls: [`${node.url}/${slug}`] }])) },
      customUrlPolicy: "off",
      onFailure: () => {},
    });
    const callers = Array.from({ length: CALLERS }, () => new AbortController());
    const { getClient } = chains.forNetwork("mainnet");
    const refused: unknown[] = [];
    const calls = callers.map(async ({ signal }, index) => {
      const client = getClient(slugs[index % slugs.length] ?? "");
      await client.send("eth_call", [], signal).catch((error: unknown) => refused.push(error));
    });
    await nextTurn();
    expect(chains.countRequestsInFlight()).toBeGreaterThan(MAX_REQUESTS_IN_FLIGHT / 2);
    expect(chains.countRequestsInFlight()).toBeLessThanOrEqual(MAX_REQUESTS_IN_FLIGHT);
    expect(refused.length).toBeGreaterThanOrEqual(CALLERS - MAX_REQUESTS_IN_FLIGHT);
    expect(refused[0]).toMatchObject(OVERLOADED);
    for (const caller of callers) caller.abort();
    await Promise.all(calls);
    expect(chains.countRequestsInFlight()).toBe(0);
    await chains.close();
  });

  test("keeps half of it for the other endpoints while one hangs", () => {
    const budget = new UpstreamBudget();
    fill(budget, "hangs");
    expect(budget.inFlight()).toBe(MAX_REQUESTS_IN_FLIGHT / 2);
    expect(budget.hasCapacityFor("other")).toBe(true);
  });

  test("sends a read to the next endpoint of the chain when the first has its share", async () => {
    const upstreamBudget = new UpstreamBudget();
    const { getLogs, pool, send } = await startPool([{}, returning("0xb")], { upstreamBudget });
    const [first, second] = pool.state().endpoints.map(({ endpoint }) => endpoint);
    fill(upstreamBudget, first ?? "");
    expect(await send()).toBe("0xb");
    fill(upstreamBudget, second ?? "");
    await expect(send()).rejects.toMatchObject(OVERLOADED);
    await expect(getLogs({ range: { from: 1, to: 9 } })).rejects.toMatchObject(OVERLOADED);
  });

  test("does not end a read whose hedge gets no place", async () => {
    let refusedEndpoint: string | undefined;
    let refusals = 0;
    class RefusingBudget extends UpstreamBudget {
      override openRequest(endpoint: string) {
        if (endpoint !== refusedEndpoint) return super.openRequest(endpoint);
        refusals += 1;
        throw tooManyRequestsError();
      }
    }
    const upstreamBudget = new RefusingBudget();
    const { nodes, pool, send, hedges, failures } = await startPool([{}, {}], { upstreamBudget });
    const respond = holdResponses(nodes[0]);
    hedges.areDue = true;
    refusedEndpoint = pool.state().endpoints[1]?.endpoint;
    const read = send();
    // The reads of the head, and the hedge.
    while (refusals < 2) await nextTurn();
    respond();
    expect(await read).toBe("0x1");
    expect(failures).toEqual([]);
  });
});

describe("the budget of response bytes", () => {
  test("bounds endless responses, which count as failures of their endpoint", async () => {
    const largest = 16 * 1024 * 1024;
    // Each sends a part of a long response and never completes it.
    const part = Buffer.alloc(3 * 1024 * 1024, " ");
    const dispatcher = new Agent({ maxResponseSize: largest });
    const { send, failures } = await startPool(
      [{ intercept: ({ response }) => response.write(part) || true }, returning("0xb")],
      { dispatcher, maxBytes: largest },
    );
    const leaving = new AbortController();
    const half = MAX_RESPONSE_MEMORY_BYTES / 2;
    const answers: unknown[] = [];
    const collect = async () => answers.push(await send("eth_call", leaving.signal));
    for (let index = 0; index < 16; index += 1) collect().catch(() => {});
    // The other endpoint answers those whose attempt has failed.
    while (answers.length < 16 - half / part.length) await nextTurn();
    expect(new Set(answers)).toEqual(new Set(["0xb"]));
    expect(failures[0]).toMatchObject({ error: "answered more bytes than there is memory for" });
    leaving.abort();
    await dispatcher.destroy();
  });
});
