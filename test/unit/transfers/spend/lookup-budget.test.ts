import { describe, expect, test } from "vitest";
import type { Waiters } from "../../../../src/resilience/waiters.js";
import {
  type BudgetKind,
  CALLER_LOOKUP_RATE,
  FREE_REQUESTS_PER_LOOKUP,
  type LookupBudget,
  LookupBudgets,
  PROCESS_RATE,
  type RequestPurpose,
} from "../../../../src/transfers/spend/lookup-budget.js";
import { createWaiters } from "../../../support/stubs/transfer-fixtures.js";

const slugs = ["ethereum", "arbitrum", "base", "gnosis", "linea", "nova", "optimism", "polygon", "polygonzk"];

function setup() {
  const clock = { now: 0 };
  const purposes: RequestPurpose[] = [];
  const exhausted: BudgetKind[] = [];
  const budgets = new LookupBudgets({
    now: () => clock.now,
    onRequest: (purpose) => purposes.push(purpose),
    onExhausted: (budget) => exhausted.push(budget),
  });
  const open = (caller: string | Waiters, isPrivate = false) => budgets.open(caller, isPrivate);
  /** Lets a caller spend all that it may. */
  const exhaust = (caller: string): void => {
    for (let lookup = 0; lookup < 1_000; lookup += 1) spendAll(open(caller));
  };
  return { clock, purposes, exhausted, open, exhaust };
}

/** Spends all that a lookup may; returns the number of requests. */
function spendAll(budget: LookupBudget, purpose: RequestPurpose = "logs", chains = slugs): number {
  let spent = 0;
  for (const slug of chains) {
    try {
      for (;;) {
        budget.spend(slug, purpose);
        spent += 1;
      }
    } catch {}
  }
  return spent;
}

describe("the budget of a lookup", () => {
  test("is 450 requests, of which the last ten search no logs", () => {
    const { open } = setup();
    const budget = open("a");
    expect(spendAll(budget, "logs", ["base"])).toBe(440);
    expect(spendAll(budget, "receipt", ["base"])).toBe(10);
    expect(spendAll(open("a"), "call", [...slugs, "tenth"])).toBe(450);
  });

  test("keeps forty searches and ten other reads for each chain that is searched", () => {
    const { open } = setup();
    const budget = open("a");
    for (const slug of slugs) budget.spend(slug, "logs");
    expect(spendAll(budget, "logs", ["base"])).toBe(39);
    for (const slug of slugs.filter((other) => other !== "base")) {
      expect(spendAll(budget, "logs", [slug])).toBeGreaterThanOrEqual(39);
    }
  });

  test("lets a chain have what the others need not", () => {
    const { open } = setup();
    const budget = open("a");
    for (let search = 0; search < 30; search += 1) budget.spend("optimism", "logs");
    // Optimism keeps ten searches and ten other reads.
    expect(spendAll(budget, "logs", ["base"])).toBe(440 - 30 - 20);
    expect(spendAll(budget, "logs", ["optimism"])).toBe(20);
    const another = open("b");
    another.spend("optimism", "receipt");
    // Nothing is kept for a chain that is not searched.
    expect(spendAll(another, "logs", ["base"])).toBe(439);
  });

  test("is that of each endpoint where several are asked", () => {
    const budgets = new LookupBudgets({ now: () => 0, requestsPerRead: 3 });
    const budget = budgets.open("a", false);
    expect(spendAll(budget, "logs", ["base"])).toBe(3 * 440);
    expect(spendAll(budget, "receipt", ["base"])).toBe(3 * 10);
    const privateBudget = budgets.open("a", true);
    expect(spendAll(privateBudget, "logs", ["base"])).toBe(3 * 40);
    expect(spendAll(privateBudget, "receipt", ["base"])).toBe(3 * 10);
    for (let lookup = 0; lookup < 40; lookup += 1) spendAll(budgets.open("a", false));
    expect(spendAll(budgets.open("a", false))).toBe(3 * FREE_REQUESTS_PER_LOOKUP);
  });

  test("over custom endpoints is 50 requests to a chain, of which the last ten search no logs", () => {
    const { open } = setup();
    const budget = open("a", true);
    expect(spendAll(budget, "logs", ["base"])).toBe(40);
    expect(spendAll(budget, "receipt", ["base"])).toBe(10);
    expect(spendAll(budget, "call", slugs)).toBe(400);
  });

  test("refuses more with the remedy, and keeps the first refusal", () => {
    const { open, exhausted, purposes } = setup();
    const budget = open("a");
    expect(budget.getExhaustion()).toBeUndefined();
    spendAll(budget, "logs", ["base", "linea", "nova"]);
    const message = expect.stringMatching(/^the search of base .* after 30 s .*; an index, or an endpoint that/);
    expect(budget.getExhaustion()).toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", budget: "lookup", message });
    expect(exhausted).toEqual(["lookup"]);
    expect(purposes).toEqual(Array(440).fill("logs"));
    const privateBudget = open("a", true);
    spendAll(privateBudget, "logs", ["base"]);
    const privateMessage = expect.stringMatching(/^the search of base takes many requests; an index, or an endpoint/);
    expect(privateBudget.getExhaustion()).toMatchObject({ message: privateMessage });
  });
});

describe("the budget of a caller", () => {
  test("pays for expensive lookups; cheap ones cost nothing", () => {
    const { open, exhausted } = setup();
    const cheap = () => {
      for (let request = 0; request < FREE_REQUESTS_PER_LOOKUP; request += 1) {
        open("wallet").spend(slugs[request % slugs.length] ?? "", "receipt");
      }
    };
    for (let lookup = 0; lookup < 10_000; lookup += 1) cheap();
    let spent = 0;
    for (let lookup = 0; lookup < 1_000; lookup += 1) {
      spent += Math.max(0, spendAll(open("a")) - FREE_REQUESTS_PER_LOOKUP);
    }
    expect(spent).toBe(CALLER_LOOKUP_RATE.capacity);
    const budget = open("a");
    expect(spendAll(budget)).toBe(FREE_REQUESTS_PER_LOOKUP);
    expect(budget.getExhaustion()).toMatchObject({
      reason: "RATE_LIMITED",
      retryAfterSeconds: 5,
      message: expect.stringContaining("an index, or an endpoint that searches the whole chain"),
    });
    expect(new Set(exhausted)).toEqual(new Set(["lookup", "caller"]));
    cheap();
    expect(spendAll(open("b"))).toBe(440);
  });

  test("is that of any who waits for the lookup and has not spent it", () => {
    const { open, exhaust } = setup();
    exhaust("a");
    expect(spendAll(open("a"))).toBe(FREE_REQUESTS_PER_LOOKUP);
    expect(spendAll(open(createWaiters("a", "b")))).toBe(440);
  });

  test("is that of the last who left where the work outlives all of them", () => {
    const { open, exhaust } = setup();
    exhaust("b");
    const waiters = createWaiters("a", "b");
    const budget = open(waiters);
    for (const caller of ["a", "b"]) waiters.remove(caller);
    expect(spendAll(budget)).toBe(FREE_REQUESTS_PER_LOOKUP);
  });

  test("is refilled", () => {
    const { open, exhaust, clock } = setup();
    exhaust("a");
    expect(spendAll(open("a"))).toBe(FREE_REQUESTS_PER_LOOKUP);
    clock.now += 1_000;
    expect(spendAll(open("a"))).toBe(FREE_REQUESTS_PER_LOOKUP + CALLER_LOOKUP_RATE.refillPerSecond);
    clock.now += 24 * 60 * 60_000;
    expect(spendAll(open("a"))).toBe(440);
  });
});

describe("the budget of the process", () => {
  test("bounds what ten thousand callers spend together", () => {
    const { open, clock, exhausted } = setup();
    let spent = 0;
    for (let caller = 0; caller < 10_000; caller += 1) {
      spent += Math.max(0, spendAll(open(`caller ${caller}`)) - FREE_REQUESTS_PER_LOOKUP);
    }
    expect(spent).toBe(PROCESS_RATE.capacity);
    expect(exhausted.at(-1)).toBe("process");
    const budget = open("another");
    spendAll(budget);
    expect(budget.getExhaustion()).toMatchObject({
      reason: "OVERLOADED",
      retryAfterSeconds: 2,
      message: expect.stringMatching(/^searches for transfers take too many requests; an index, or an endpoint/),
    });
    clock.now += 2_000;
    expect(spendAll(open("another"))).toBe(440);
  });
});
