import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { LookupContext, LookupResult, TransferQuery } from "../../../../src/transfers/sources/transfer-source.js";
import type { WatchTarget } from "../../../../src/transfers/watch/watch-lifecycle.js";
import { MAX_TRANSFERS_PER_TRANSACTION, WatchLookups } from "../../../../src/transfers/watch/watch-lookups.js";
import {
  createDeferred,
  createLookupContext,
  createStatus,
  createWaiters,
} from "../../../support/stubs/transfer-fixtures.js";
import { startLookupService } from "../spend/lookup-service.js";
import { hashOf, mainnet } from "./watch-world.js";

/** Lookups through a status cache that `find` stands for, and the queries that have reached it. */
function setup(
  find: (query: TransferQuery, context: LookupContext) => Promise<LookupResult>,
  untilRead: (callers: Iterable<string>) => Promise<void> = () => nextTurn(),
) {
  const begun: string[] = [];
  const { chains } = createLookupContext();
  const lookups = createLookups({
    chains: { forNetwork: () => chains },
    statusCache: {
      findNow(query, context) {
        begun.push(`${context.caller} ${query.transferId ?? query.transactionHash}`);
        return find(query, context);
      },
      refresh: find,
    },
    untilRead,
  });
  return { lookups, begun };
}

type Options = ConstructorParameters<typeof WatchLookups<string>>[0];
const createLookups = (parts: Pick<Options, "chains" | "statusCache" | "untilRead">) =>
  new WatchLookups<string>({
    ...parts,
    present: async () => ({ message: "", fingerprint: 0, isFinal: false }),
    isFinal: async () => false,
    timeoutMs: 10_000,
    now: () => 0,
  });

const toTarget = (value: string, kind: "id" | "hash" = "id"): WatchTarget => {
  return { network: mainnet, kind, value, isFull: false };
};

test("a lookup that several callers wait for begins in the first turn that comes to one of them", async () => {
  const { lookups, begun } = setup(() => createDeferred<LookupResult>().promise);
  for (let number = 0; number < 100; number++) void lookups.findAll(toTarget(hashOf(number)), createWaiters("greedy"));
  const shared = createWaiters("greedy");
  void lookups.findAll(toTarget("shared"), shared);
  await vi.waitFor(() => expect(begun).toHaveLength(8), { timeout: 60_000 });
  expect(begun).not.toContain("greedy shared");
  shared.add("you");
  await vi.waitFor(() => expect(begun).toHaveLength(9), { timeout: 60_000 });
  expect(begun.filter((text) => text.endsWith("shared"))).toEqual(["you shared"]);
});

test("a lookup knows all who watch its target, for the queues that it waits in", async () => {
  const known: string[] = [];
  const { lookups } = setup(async (_query, { waiters }) => {
    known.push(...(waiters ?? []));
    return undefined;
  });
  await lookups.findAll(toTarget("shared"), createWaiters("a", "b"));
  expect(known).toEqual(["a", "b"]);
});

test("a caller who has left brings no turn, and pays nothing", async () => {
  const first = createDeferred<LookupResult>();
  const { lookups, begun } = setup(() => first.promise);
  for (let number = 0; number < 20; number++)
    void lookups.findAll(toTarget(hashOf(number)), createWaiters(number % 2 === 0 ? "a" : "b"));
  const shared = createWaiters("a", "b");
  const found = lookups.findAll(toTarget("shared"), shared);
  shared.remove("a");
  first.resolve(undefined);
  expect(await found).toEqual([]);
  expect(begun.filter((text) => text.endsWith("shared"))).toEqual(["b shared"]);
});

test("lookups that nobody wants any more do not begin", async () => {
  const { lookups, begun } = setup((_query, { signal }) => {
    const { promise, reject } = createDeferred<LookupResult>();
    signal.addEventListener("abort", () => reject(signal.reason));
    return promise;
  });
  const watched = Array.from({ length: 5_000 }, (_, number) => createWaiters(`caller ${number % 50}`));
  const results = watched.map((waiters, number) => lookups.findAll(toTarget(hashOf(number)), waiters));
  await vi.waitFor(() => expect(begun).toHaveLength(16), { timeout: 60_000 });
  const running = begun.length;
  for (const [number, waiters] of watched.entries()) {
    waiters.remove(`caller ${number % 50}`);
    // As between two resets that are read at once: the next one gets its turn here, and leaves too.
    await new Promise(process.nextTick);
  }
  const outcomes = await Promise.allSettled(results);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect([running, begun.length]).toEqual([16, 16]);
});

test("a lookup begins when what its callers have sent is read, unless they have left", async () => {
  const read = createDeferred<void>();
  const asked: string[] = [];
  const { lookups, begun } = setup(
    async () => undefined,
    (callers) => {
      asked.push(...callers);
      return read.promise;
    },
  );
  const leaving = createWaiters("leaves");
  const leaves = lookups.findAll(toTarget("0x01"), leaving);
  const stays = lookups.findAll(toTarget("0x02"), createWaiters("stays"));
  await nextTurn();
  expect([asked, begun]).toEqual([["leaves", "stays"], []]);
  leaving.remove("leaves");
  read.resolve();
  await expect(leaves).rejects.toThrow();
  expect([await stays, begun]).toEqual([[], ["stays 0x02"]]);
});

test("a transaction is looked up with all its transfers, up to a limit", async () => {
  const otherTransferIds = Array.from({ length: 150 }, (_, index) => hashOf(index));
  const { lookups, begun } = setup(async () => createStatus({ otherTransferIds }));
  const statuses = await lookups.findAll(toTarget("0x01", "hash"), createWaiters("me"));
  expect([statuses.length, begun.length]).toEqual([MAX_TRANSFERS_PER_TRANSACTION, MAX_TRANSFERS_PER_TRANSACTION]);
});

test("watches that end send no request after that", async () => {
  const service = await startLookupService();
  const held = createDeferred<void>();
  for (const node of service.nodes) node.beforeResponse = () => held.promise;
  const { chains, cache } = service;
  const lookups = createLookups({ chains, statusCache: cache, untilRead: () => nextTurn() });
  const countRequests = () => service.nodes.reduce((sum, { methods }) => sum + methods.length, 0);
  const watched = Array.from({ length: 1_000 }, () => createWaiters("me"));
  const results = watched.map((waiters, number) => lookups.findAll(toTarget(hashOf(number), "hash"), waiters));
  // Eight lookups on nine chains each.
  await expect.poll(countRequests).toBe(72);
  for (const waiters of watched) waiters.remove("me");
  await Promise.allSettled(results);
  const requests = countRequests();
  held.resolve();
  expect(await service.measure({ transactionHash: hashOf(5_000) })).toMatchObject({ outcome: "not found" });
  expect(countRequests() - requests).toBe(9);
});
