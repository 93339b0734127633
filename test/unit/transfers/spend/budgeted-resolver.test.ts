import { describe, expect, test } from "vitest";
import { ResumableLogScanner } from "../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
import { BudgetedResolver } from "../../../../src/transfers/spend/budgeted-resolver.js";
import { LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createTransferChainStub,
  createWaiters,
  flushEventLoop,
  repeatedByteHash,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const query = { transferId: repeatedByteHash("1a"), transactionHash: undefined };
const filter = { address: repeatedByteHash("b1"), topics: [] };

/** Runs `work` as the lookup of a caller over the chain Optimism. */
function setup() {
  const chain = createTransferChainStub("optimism");
  const held = createDeferred<void>();
  let work = async (_: LookupContext): Promise<unknown> => undefined;
  const resolver = new BudgetedResolver(
    { resolve: async (_, context) => (await work(context)) as undefined },
    new LookupBudgets({ now: () => 0 }),
  );
  function resolve(lookup: typeof work, { custom = [], ...more }: Partial<LookupContext> & Custom = {}) {
    work = lookup;
    return resolver.resolve(query, createLookupContext({ chains: createChainAccess([chain], custom), ...more }));
  }
  return {
    chain,
    held,
    resolve,
    /** Begins searches of caller a, which wait for the chain. */
    async flood(count: number, custom: string[] = []) {
      chain.beforeResponse = () => held.promise;
      const searches = Array.from({ length: count }, () => resolve(search, { custom }));
      for (const each of searches) each.catch(() => {});
      await flushEventLoop();
      return searches;
    },
  };
}

interface Custom {
  /** Chains for which the caller names its own endpoint. */
  readonly custom?: string[];
}

const search = ({ chains, signal }: LookupContext) =>
  chains.getClient("optimism").getLogs({ filter, range: { from: 0, to: 9 } }, signal);

describe("log searches", () => {
  test("of one caller run sixteen at a time, and make no other caller wait", async () => {
    const { chain, held, resolve, flood } = setup();
    const searches = await flood(100);
    expect(chain.methods).toHaveLength(16);
    const other = resolve(search, { caller: "b" });
    await flushEventLoop();
    expect(chain.methods).toHaveLength(17);
    held.resolve();
    await Promise.all([...searches, other]);
    expect(chain.methods).toHaveLength(101);
  });

  test("of a lookup that several callers wait for are in the queue of each of them", async () => {
    const { chain, resolve, flood } = setup();
    await flood(100);
    const waiters = createWaiters("a");
    resolve(search, { waiters }).catch(() => {});
    await flushEventLoop();
    expect(chain.methods).toHaveLength(16);
    waiters.add("b");
    await flushEventLoop();
    expect(chain.methods).toHaveLength(17);
  });

  test("go on in a scan that outlives all who waited for the lookup", async () => {
    const { chain, held, resolve } = setup();
    const scanner = new ResumableLogScanner(new AbortController().signal, () => 0);
    const waiters = createWaiters("a");
    chain.beforeResponse = (method) => (method === "eth_getLogs" ? held.promise : undefined);
    const scan = (context: LookupContext) => {
      const client = context.chains.getClient("optimism");
      const range = { findStartBlock: async () => 50_000, blockMs: 1_000 };
      return scanner.resume("scan", { client, filter, ...range, isMatch: () => true, targetCount: 1 }, context);
    };
    const abandoned = resolve(scan, { waiters, signal: waiters.signal });
    await flushEventLoop();
    waiters.remove("a");
    await expect(abandoned).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    const joined = resolve(scan, { caller: "b" }).then(() => "joined");
    held.resolve();
    expect(await joined).toBe("joined");
    expect(chain.searchedRanges.map(({ from }) => from)).toEqual([50_000, 60_000, 80_000]);
  });

  test("of one chain do not make those of another wait", async () => {
    const { resolve, flood } = setup();
    await flood(16);
    const onBase = ({ chains, signal }: LookupContext) =>
      chains.getClient("base").getLogs({ filter, range: { from: 0, to: 9 } }, signal);
    expect(await resolve(onBase)).toMatchObject({ result: [] });
  });

  test("on a caller's own endpoint take no turns", async () => {
    const { chain, held, flood } = setup();
    const searches = await flood(40, ["optimism"]);
    expect(chain.methods).toHaveLength(40);
    held.resolve();
    await Promise.all(searches);
  });

  test("whose turn does not come in time are unavailable", async () => {
    const { resolve, flood } = setup();
    await flood(16);
    const caller = new AbortController();
    const waiting = resolve(search, { signal: caller.signal });
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
    await expect(resolve(spendAll)).rejects.toMatchObject(tooLong);
    expect(chain.methods).toHaveLength(450);
    const afterwards = async (context: LookupContext): Promise<void> => {
      await spendAll(context).catch(() => {});
      throw unavailableError("another chain");
    };
    await expect(resolve(afterwards)).rejects.toMatchObject(tooLong);
  });

  test("answers when it has an answer, and fails with other errors as they are", async () => {
    const { resolve } = setup();
    expect(await resolve((context) => spendAll(context).catch(() => "a status"))).toBe("a status");
    const wrong = new Error("wrong");
    const failing = async (context: LookupContext): Promise<void> => {
      await spendAll(context).catch(() => {});
      throw wrong;
    };
    await expect(resolve(failing)).rejects.toBe(wrong);
    await expect(resolve(() => Promise.reject(unavailableError("a chain")))).rejects.toThrow("a chain is down");
  });
});
