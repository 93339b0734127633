import { describe, expect, test } from "vitest";
import { createDeferred, flushEventLoop } from "../../../support/stubs/transfer-fixtures.js";
import {
  hashFromName,
  transferFromL1CompletedEvent,
  transferSentEvent,
  transferSentToL2Event,
  withdrawalBondedEvent,
} from "../index/support/hop-events.js";
import { startLookupService } from "./lookup-service.js";

// What lookups cost at the chains, in HTTP requests.

const unknownId = { transferId: hashFromName("unknown") };
const unknownHash = { transactionHash: hashFromName("unknown") };
const tooLong = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringMatching(/an index, or an endpoint that/) };
const MAX_REQUESTS = 500;
const MAX_REPEATED_REQUESTS = 20;
const PAUSE_MS = 30_000;

describe("a lookup over endpoints that search a part of the chain at once", () => {
  test.each([
    ["10 blocks, without naming the limit", 10, false],
    ["500 blocks", 500, true],
    ["10,000 blocks", 10_000, true],
    ["1,000,000 blocks", 1_000_000, true],
  ])("costs at most 500 requests, again none for 30 s: %s", async (_, maxLogBlocks, namesLimit) => {
    const { nodes, measure, clock } = await startLookupService({ head: 120_000_000, maxLogBlocks });
    for (const node of nodes) node.namesLimit = namesLimit;
    const first = await measure(unknownId);
    expect(first.outcome).toMatchObject(tooLong);
    expect(first.requests).toBeGreaterThan(100);
    expect(first.requests).toBeLessThanOrEqual(MAX_REQUESTS);
    clock.now += PAUSE_MS;
    const again = await measure(unknownId);
    expect(again.outcome).toEqual(first.outcome);
    expect(again.requests).toBeLessThanOrEqual(MAX_REPEATED_REQUESTS);
    clock.now += 1;
    expect((await measure(unknownId)).requests).toBeLessThanOrEqual(MAX_REQUESTS);
  });

  test("costs at most 500 requests also where the chain id is read with every search", async () => {
    const { nodes, measure } = await startLookupService({ head: 120_000_000, maxLogBlocks: 10_000 });
    // Longer than a chain id is valid.
    for (const node of nodes) node.beforeResponse = () => new Promise((resolve) => setTimeout(resolve, 260));
    const { requests, outcome } = await measure(unknownId);
    expect(outcome).toMatchObject(tooLong);
    expect(requests).toBeLessThanOrEqual(MAX_REQUESTS);
    const methods = nodes.flatMap((node) => node.methods);
    expect(methods.filter((method) => method === "eth_chainId").length).toBeGreaterThan(100);
  });

  test("goes on where the last one stopped, newest blocks first, until it finds the transfer", async () => {
    const { getNode, measure, find, clock } = await startLookupService({ head: 2_000_000, maxLogBlocks: 10_000 });
    const base = getNode("base");
    base.events = [{ event: transferSentEvent("deep", { from: "base", to: "arbitrum" }), block: 50_000 }];
    const query = { transferId: hashFromName("deep") };
    expect((await measure(query)).outcome).toMatchObject(tooLong);
    const lowest = Math.min(...base.searchedRanges.map(({ from }) => from));
    base.searchedRanges.length = 0;
    clock.now += PAUSE_MS + 1;
    expect((await measure(query)).outcome).toMatchObject(tooLong);
    // The newest blocks again, which may have been reorged, then those below.
    const [newest, next] = base.searchedRanges;
    expect(newest?.to).toBe(2_000_000);
    expect(next?.to).toBe(lowest - 1);
    await expect
      .poll(async () => {
        clock.now += PAUSE_MS + 1;
        return (await measure(query)).outcome;
      })
      .toBe("PENDING");
    expect(await find(query)).toMatchObject({ sent: { blockNumber: 50_000 } });
  });

  test("goes on in the same way among transfers from L1 with equal values", async () => {
    const { getNode, measure, clock } = await startLookupService({ head: 2_000_000, maxLogBlocks: 500 });
    const event = transferSentToL2Event("a", "sent", { to: "arbitrum" });
    // Seven days before it are searched, which are 302,400 blocks.
    getNode("ethereum").events = [{ event, block: 1_900_000 }];
    const outcomes: unknown[] = [];
    for (let lookup = 0; lookup < 5 && outcomes.at(-1) !== "PENDING"; lookup += 1) {
      const { requests, outcome } = await measure({ transactionHash: event.transactionHash });
      expect(requests).toBeLessThanOrEqual(MAX_REQUESTS);
      outcomes.push(outcome);
      clock.now += PAUSE_MS + 1;
    }
    expect(outcomes[0]).toMatchObject(tooLong);
    expect(outcomes.at(-1)).toBe("PENDING");
  });
});

describe("a lookup of what does not exist", () => {
  test.each([
    ["hash", unknownHash],
    ["ID", unknownId],
  ])("by %s costs nine requests, and none within five seconds", async (_, query) => {
    const { measure, clock } = await startLookupService();
    expect(await measure(query)).toEqual({ requests: 9, outcome: "not found" });
    for (let round = 0; round < 2; round += 1) {
      clock.now += 2_500;
      expect(await measure(query, { caller: `b${round}` })).toEqual({ requests: 0, outcome: "not found" });
    }
    clock.now += 1;
    expect((await measure(query)).requests).toBe(9);
  });
});

test.each([
  ["from L1", (at: number) => transferFromL1CompletedEvent(`fake ${at}`, "forged", { to: "arbitrum" })],
  ["between L2s", (at: number) => withdrawalBondedEvent(`fake ${at}`, { to: "arbitrum" })],
])("a receipt with 1,200 forged deliveries %s costs the operator at most 60 requests", async (_, create) => {
  const transactionHash = hashFromName("forged");
  for (const maxLogBlocks of [Number.POSITIVE_INFINITY, 10_000]) {
    const { measure, getCustomNode } = await startLookupService({ head: 2_000_000, maxLogBlocks });
    const forged = Array.from({ length: 1_200 }, (_, at) => ({ ...create(at), transactionHash }));
    getCustomNode("arbitrum").events = forged.map((event, index) => ({ event, block: 90_000, index }));
    const { requests, outcome } = await measure({ transactionHash }, { custom: ["arbitrum"] });
    expect(requests).toBeLessThanOrEqual(60);
    expect(outcome).toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  }
});

describe("a caller that leaves", () => {
  const event = transferSentEvent("a", { from: "base", to: "arbitrum" });
  const query = { transactionHash: event.transactionHash };

  async function startAndLeave(custom: readonly string[]) {
    const service = await startLookupService();
    const base = service.getNode("base");
    base.events = [{ event, block: 99_000 }];
    const held = createDeferred<void>();
    base.beforeResponse = () => held.promise;
    const caller = new AbortController();
    const abandoned = service.find(query, { signal: caller.signal, custom });
    await expect.poll(() => base.methods.length).toBe(1);
    caller.abort();
    await expect(abandoned).rejects.toBeDefined();
    held.resolve();
    return { ...service, base };
  }

  test("ends its search: no request is sent after that", async () => {
    const service = await startLookupService({ head: 1_000_000, maxLogBlocks: 10_000 });
    const held = createDeferred<void>();
    for (const node of service.nodes)
      node.beforeResponse = (method) => (method === "eth_getLogs" ? held.promise : undefined);
    const countSearches = () =>
      service.nodes.flatMap(({ methods }) => methods).filter((it) => it === "eth_getLogs").length;
    const caller = new AbortController();
    const abandoned = service.find(unknownId, { signal: caller.signal });
    await expect.poll(countSearches).toBeGreaterThan(5);
    caller.abort();
    await expect(abandoned).rejects.toBeDefined();
    const searches = countSearches();
    held.resolve();
    // Another lookup takes longer than what would still come.
    await service.measure(unknownHash);
    expect(countSearches()).toBe(searches);
  });

  test("ends a lookup over its own endpoint, which nobody else could use", async () => {
    const { base } = await startAndLeave(["gnosis"]);
    await flushEventLoop();
    expect(base.methods).toEqual(["eth_getTransactionReceipt"]);
  });
});
