import { describe, expect, test } from "vitest";
import { addPendingTransfer } from "../../support/attacks/attacked-transfers.js";
import { askSlowChains } from "../../support/attacks/upstream-attacks.js";
import { setUpAttacks } from "./attack-setup.js";

const { startChains, startService } = setUpAttacks();

describe("chains whose only endpoint is slow", () => {
  test("answer quotes and statuses after 2 s per response as they do without latency", async () => {
    const chains = await startChains();
    const hash = addPendingTransfer(chains);
    const fast = await askSlowChains((await startService(chains)).port, hash);
    chains.behaviour.latencyMs = 2_000;
    const slow = await askSlowChains((await startService(chains)).port, hash);
    expect([fast.quote.status, fast.status.status]).toEqual([200, 200]);
    expect([slow.quote.status, slow.status.status]).toEqual([200, 200]);
    expect(readFields(slow.quote.body)).toEqual(readFields(fast.quote.body));
    expect(readFields(slow.status.body)).toEqual(readFields(fast.status.body));
  });

  test("answer quotes after 3.5 s per response, which is one round", async () => {
    const chains = await startChains({ latencyMs: 3_500 });
    const { quote } = await askSlowChains((await startService(chains)).port, addPendingTransfer(chains));
    expect(quote.status).toBe(200);
  });
});

/** Returns the fields of a body without those that depend on the time. */
function readFields(body: string): unknown {
  const { deadline: _, destinationDeadline: __, ...fields } = JSON.parse(body) as Record<string, unknown>;
  return fields;
}
