import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../../../../../src/errors.js";
import {
  backfillIndex,
  type IndexBackfillOptions,
  syncIndex,
} from "../../../../../src/transfers/index/sync/index-sync.js";
import { openIndex } from "../../../../support/index/open-index.js";
import { createChainStub } from "../../../../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { getChain, mainnetNetwork } from "../support/hop-events.js";

const folder = useTemporaryFolder();
/** Optimism and Nova with 10,000 final blocks each. */
function createStubs() {
  const stubs = ["optimism", "nova"].map((slug) => {
    const stub = createChainStub({ slug, chainId: getChain(slug).chainId, head: 10_000 });
    stub.finalized = 10_000;
    return [slug, stub] as const;
  });
  return new Map(stubs);
}

/** A process that backfills the index; its pauses end at once. */
async function launch(file: string, stubs: ReturnType<typeof createStubs>) {
  const index = await openIndex(file);
  const stopping = new AbortController();
  const pauses: number[] = [];
  const options: IndexBackfillOptions = {
    index,
    network: { ...mainnetNetwork, chains: new Map([...stubs.keys()].map((slug) => [slug, getChain(slug)])) },
    chains: { getClient: (slug) => stubs.get(slug)?.client as never, hasCustomEndpoint: () => false },
    blockAt: async () => 0,
    from: { timestamp: 0, blocks: new Map() },
    sleep: async (ms) => {
      pauses.push(ms);
      await setImmediate();
    },
    events: { onError: vi.fn(), onLeaseHeld: vi.fn(), onBackfillProgress: vi.fn() },
    signal: stopping.signal,
  };
  const run = (done: Promise<void>): Promise<void> => {
    onTestFinished(() => index.close());
    onTestFinished(() => done);
    onTestFinished(() => stopping.abort());
    return done;
  };
  return { index, options, pauses, run, stop: () => stopping.abort() };
}

test("a chain that is down does not keep another process from backfilling the other chains", async () => {
  const stubs = createStubs();
  const nova = stubs.get("nova");
  if (nova === undefined) throw new Error("no nova");
  nova.onRequest = () => {
    throw new ServiceError("UPSTREAM_UNAVAILABLE", "nova is gone");
  };
  const file = `${folder()}/one-chain-down`;
  const first = await launch(file, stubs);
  first.run(backfillIndex(first.options));
  await vi.waitFor(async () => expect((await first.index.reader.readCoverage()).get("optimism")?.fromBlock).toBe(0), {
    timeout: 60_000,
  });
  const second = await launch(file, stubs);
  second.run(backfillIndex(second.options));
  await vi.waitFor(() => expect(second.options.events.onLeaseHeld).toHaveBeenCalledWith("nova", { pid: process.pid }), {
    timeout: 60_000,
  });
  await vi.waitFor(
    () => {
      expect(second.options.events.onBackfillProgress).toHaveBeenCalledWith(
        expect.objectContaining({ chain: "optimism" }),
      );
    },
    { timeout: 60_000 },
  );
  expect(second.options.events.onLeaseHeld).toHaveBeenCalledTimes(1);
});

test("doubles the delay after failures until there is progress", async () => {
  const stubs = createStubs();
  stubs.delete("nova");
  const optimism = stubs.get("optimism");
  if (optimism === undefined) throw new Error("no optimism");
  let pages = 0;
  optimism.onRequest = () => {
    if (!optimism.requests.at(-1)?.includes("eth_getLogs")) return;
    pages += 1;
    // Each page is attempted with two requests.
    if (pages <= 6 || pages === 8) throw new Error("down");
  };
  const { options, pauses, run } = await launch(`${folder()}/pauses`, stubs);
  await run(backfillIndex(options));
  expect(pauses).toEqual([2_000, 4_000, 8_000, 2_000]);
});

test("pauses after each page beside the service, but not in the command", async () => {
  const stubs = createStubs();
  stubs.delete("nova");
  const alone = await launch(`${folder()}/alone`, stubs);
  await alone.run(backfillIndex(alone.options));
  expect(alone.pauses).toEqual([]);
  const beside = await launch(`${folder()}/beside`, stubs);
  const { events } = beside.options;
  beside.run(
    syncIndex({ ...beside.options, wallNow: () => 0, monotonicNow: () => 0, events: { ...events, onReorg: vi.fn() } }),
  );
  await vi.waitFor(async () => expect((await beside.index.reader.readCoverage()).get("optimism")?.fromBlock).toBe(0), {
    timeout: 60_000,
  });
  const pages = vi.mocked(events.onBackfillProgress).mock.calls.length - 1;
  expect(pages).toBeGreaterThan(1);
  await vi.waitFor(() => expect(beside.pauses.filter((ms) => ms === 250)).toHaveLength(pages), { timeout: 60_000 });
});
