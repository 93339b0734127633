import { describe, expect, test } from "vitest";
import {
  lookUpForgedReceipt,
  lookUpUnknownHash,
  lookUpUnknownId,
  nameOneHost,
} from "../../support/attacks/upstream-attacks.js";
import { setUpAttacks } from "./attack-setup.js";

const CHAINS = 9;

const { startChains, startService } = setUpAttacks();

describe("look-ups", () => {
  test("of an unknown transfer ID stay within a budget where endpoints search 10,000 blocks at a time", async () => {
    // So slow that each response is too late to verify the chain of the next request.
    const chains = await startChains({ maxLogBlocks: 10_000, latencyMs: 300 });
    const { port } = await startService(chains);
    const [first, again] = await lookUpUnknownId(port, chains);
    expect(first).toMatchObject({ status: 503, reason: "UPSTREAM_UNAVAILABLE" });
    expect(first?.requests).toBeLessThanOrEqual(500);
    expect(again).toMatchObject({ status: 503, reason: "UPSTREAM_UNAVAILABLE" });
    expect(again?.requests).toBeLessThanOrEqual(20);
  });

  test("of an unknown hash ask each chain once within the time of a block", async () => {
    const chains = await startChains();
    const costs = await lookUpUnknownHash((await startService(chains)).port, chains);
    expect(costs.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(costs.map(({ requests }) => requests)).toEqual([CHAINS, 0, 0]);
  });
});

describe("callers' endpoints", () => {
  test("cannot start more than 60 searches on the operator's endpoints by a forged receipt", async () => {
    const [operator, attacker] = [await startChains({ latencyMs: 20 }), await startChains()];
    const { port } = await startService(operator);
    const { logSearches, otherStatuses } = await lookUpForgedReceipt(port, operator, attacker, 1_200);
    expect(logSearches).toBeLessThanOrEqual(60);
    expect(new Set(otherStatuses)).toEqual(new Set([200]));
  });

  test.each([
    ["responds with 500", { errorStatus: 500 }],
    ["does not respond", { isHanging: true }],
  ])("that share one host, which %s, get one attempt each", async (_name, behaviour) => {
    const [operator, host] = [await startChains(), await startChains(behaviour)];
    const { requests, connections } = await nameOneHost((await startService(operator)).port, host);
    expect(requests).toBeLessThanOrEqual(CHAINS);
    expect(connections).toBeLessThanOrEqual(CHAINS);
  });
});
