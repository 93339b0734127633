import { describe, expect, test } from "vitest";
import { Waiters } from "../../../../src/resilience/waiters.js";
import { ResumableLogScanner } from "../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
import { BudgetedResolver } from "../../../../src/transfers/spend/budgeted-resolver.js";
import { LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
  repeatedByteHash,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const query = { transferId: repeatedByteHash("1a"), transactionHash: undefined };
const filter = { address: repeatedByteHash("b1"), topics: [] };

/** Runs `work` as the lookup of a caller over the chain Optimism. */
function setup() {
  const chain = createTransferChainStub("optimism");
  let work = async (_: LookupContext): Promise<unknown> => undefined;
  const resolver = new BudgetedResolver(
    { resolve: async (_, context) => (await work(context)) as undefined },
    new LookupBudgets({ now: () => 0 }),
  );
  return {
    chain,
    resolve(
      caller: string,
      lookup: typeof work,
      custom: readonly string[] = [],
      signal?: AbortSignal,
      waiters?: Waiters,
    ) {
      work = lookup;
      const chains = createChainAccess([chain], custom);
      return resolver.resolve(query, createLookupContext({ chains, caller, waiters, ...(signal && { signal }) }));
    },
    search: ({ chains, signal }: LookupContext) =>
      chains.getClient("optimism").getLogs({ filter, range: { from: 0, to: 9 } }, signal),
  };
}

describe("log searches", () => {
  test("of one caller run sixteen at a time, and make no other caller wait", async () => {
    const { chain, resolve, search } = setup();
    const held = createDeferred<void>();
    chain.beforeResponse = () => held.promise;
    const flood = Array.from({ length: 100 }, () => resolve("a", search));
    await flushEventLoop();
    expect(chain.methods).toHaveLength(16);
    const other = resolve("b", search);
    await flushEventLoop();
    expect(chain.methods).toHaveLength(17);
    held.resolve();
    await Promise.all([...flood, other]);
    expect(chain.methods).toHaveLength(101);
  });

  test("of a lookup that several callers wait for are in the queue of each of them", async () => {
    const { chain, resolve, search } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    for (let at = 0; at < 100; at += 1) resolve("a", search).catch(() => {});
    const waiters = new Waiters();
    waiters.add("a");
    resolve("a", search, [], undefined, waiters).catch(() => {});
    await flushEventLoop();
    expect(chain.methods).toHaveLength(16);
    waiters.add("b");
    await flushEventLoop();
    expect(chain.methods).toHaveLength(17);
  });

  test("go on in a scan that outlives all who waited for the lookup", async () => {
    const { chain, resolve } = setup();
    const scanner = new ResumableLogScanner(new AbortController().signal, () => 0);
    const waiters = new Waiters();
    waiters.add("a");
    const held = createDeferred<void>();
    chain.beforeResponse = (method) => (method === "eth_getLogs" ? held.promise : undefined);
    const scan = (context: LookupContext) =>
      scanner.resume(
        "scan",
        {
          client: context.chains.getClient("optimism"),
          filter,
          findStartBlock: async () => 50_000,
          blockMs: 1_000,
          isMatch: () => true,
          targetCount: 1,
        },
        context,
      );
    const abandoned = resolve("a", scan, [], waiters.signal, waiters);
    await flushEventLoop();
    waiters.remove("a");
    await expect(abandoned).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    const joined = resolve("b", scan).then(() => "joined");
    held.resolve();
    expect(await joined).toBe("joined");
    expect(chain.searchedRanges.map(({ from }) => from)).toEqual([50_000, 60_000, 80_000]);
  });

  test("of one chain do not make those of another wait", async () => {
    const { chain, resolve, search } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    for (let at = 0; at < 16; at += 1) resolve("a", search).catch(() => {});
    const onBase = ({ chains, signal }: LookupContext) =>
      chains.getClient("base").getLogs({ filter, range: { from: 0, to: 9 } }, signal);
    expect(await resolve("a", onBase)).toMatchObject({ result: [] });
  });

  test("that fail do so with the error of their chain", async () => {
    const { chain, resolve, search } = setup();
    chain.beforeResponse = () => {
      throw unavailableError("optimism");
    };
    await expect(resolve("a", search)).rejects.toThrow("optimism is down");
  });

  test("on a caller's own endpoint take no turns", async () => {
    const { chain, resolve, search } = setup();
    const held = createDeferred<void>();
    chain.beforeResponse = () => held.promise;
    const searches = Array.from({ length: 40 }, () => resolve("a", search, ["optimism"]));
    await flushEventLoop();
    expect(chain.methods).toHaveLength(40);
    held.resolve();
    await Promise.all(searches);
  });

  test("whose turn does not come in time are unavailable", async () => {
    const { chain, resolve, search } = setup();
    chain.beforeResponse = () => createDeferred<void>().promise;
    for (let at = 0; at < 16; at += 1) resolve("a", search).catch(() => {});
    const caller = new AbortController();
    const waiting = resolve("a", search, [], caller.signal);
    await flushEventLoop();
    caller.abort();
    await expect(waiting).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the logs of optimism could not be searched in time",
    });
  });
});

describe("a lookup that has spent its budget", () => {
  const spendAll = async ({ chains, signal }: LookupContext): Promise<void> => {
    for (;;) await chains.getClient("optimism").send("eth_call", [{ to: "", data: "" }], signal);
  };
  const tooLong = { reason: "UPSTREAM_UNAVAILABLE", budget: "lookup" };

  test("fails with that, whatever failed afterwards", async () => {
    const { chain, resolve } = setup();
    await expect(resolve("a", spendAll)).rejects.toMatchObject(tooLong);
    expect(chain.methods).toHaveLength(450);
    const afterwards = async (context: LookupContext): Promise<void> => {
      await spendAll(context).catch(() => {});
      throw unavailableError("another chain");
    };
    await expect(resolve("a", afterwards)).rejects.toMatchObject(tooLong);
  });

  test("answers when it has an answer, and fails with other errors as they are", async () => {
    const { resolve } = setup();
    expect(await resolve("a", (context) => spendAll(context).catch(() => "a status"))).toBe("a status");
    const wrong = new Error("wrong");
    const failing = async (context: LookupContext): Promise<void> => {
      await spendAll(context).catch(() => {});
      throw wrong;
    };
    await expect(resolve("a", failing)).rejects.toBe(wrong);
    await expect(resolve("a", () => Promise.reject(unavailableError("a chain")))).rejects.toThrow("a chain is down");
  });
});
