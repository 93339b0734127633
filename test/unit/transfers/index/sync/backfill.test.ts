import { expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../../../../../src/errors.js";
import { backfillIndex, syncIndex } from "../../../../../src/transfers/index/sync/index-sync.js";
import { useTestIndexes } from "../../../../support/index/open-index.js";
import type { ChainStub } from "../../../../support/stubs/chain-stub.js";
import { createFinalChain, createSyncOptions } from "../support/sync-harness.js";

const indexes = useTestIndexes();

/** A process that backfills an index of chains with 10,000 final blocks each. */
async function launch(stubs: readonly ChainStub[], file?: string) {
  const index = await indexes.open(file);
  const { stop, ...process } = createSyncOptions(index, new Map(stubs.map((stub) => [stub.client.slug, stub])));
  const run = (done: Promise<void>): Promise<void> => {
    onTestFinished(() => done);
    onTestFinished(() => stop());
    return done;
  };
  const readFirstBlock = async () => (await index.reader.readCoverage()).get("optimism")?.fromBlock;
  return { ...process, index, run, readFirstBlock };
}

const PATIENT = { timeout: 60_000 };

test("a chain that is down does not keep another process from backfilling the other chains", async () => {
  const [optimism, nova] = [createFinalChain("optimism", 10_000), createFinalChain("nova", 10_000)];
  nova.onRequest = () => {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", "nova is gone");
  };
  const first = await launch([optimism, nova]);
  first.run(backfillIndex(first.options));
  await vi.waitFor(async () => expect(await first.readFirstBlock()).toBe(0), PATIENT);
  const { run, options, events } = await launch([optimism, nova], first.index.file);
  run(backfillIndex(options));
  await vi.waitFor(() => expect(events.onLeaseHeld).toHaveBeenCalledWith("nova", { pid: process.pid }), PATIENT);
  const ofOptimism = expect.objectContaining({ chain: "optimism" });
  await vi.waitFor(() => expect(events.onBackfillProgress).toHaveBeenCalledWith(ofOptimism), PATIENT);
  expect(events.onLeaseHeld).toHaveBeenCalledTimes(1);
});

test("doubles the delay after failures until there is progress", async () => {
  const optimism = createFinalChain("optimism", 10_000);
  let pages = 0;
  optimism.onRequest = () => {
    if (!optimism.requests.at(-1)?.includes("eth_getLogs")) return;
    pages += 1;
    // Each page is attempted with two requests.
    if (pages <= 6 || pages === 8) throw new Error("down");
  };
  const { options, pauses, run } = await launch([optimism]);
  await run(backfillIndex(options));
  expect(pauses).toEqual([2_000, 4_000, 8_000, 2_000]);
});

test("pauses after each page beside the service, but not in the command", async () => {
  const optimism = createFinalChain("optimism", 10_000);
  const alone = await launch([optimism]);
  await alone.run(backfillIndex(alone.options));
  expect(alone.pauses).toEqual([]);
  const beside = await launch([optimism]);
  beside.run(syncIndex(beside.options));
  await vi.waitFor(async () => expect(await beside.readFirstBlock()).toBe(0), PATIENT);
  const pages = beside.events.onBackfillProgress.mock.calls.length - 1;
  expect(pages).toBeGreaterThan(1);
  await vi.waitFor(() => expect(beside.pauses.filter((ms) => ms === 250)).toHaveLength(pages), PATIENT);
});
