import { expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { FinalityTracker } from "../../../../src/chain/heads/finality-tracker.js";
import { BlockFinder } from "../../../../src/chain/read/block-finder.js";
import { AdaptiveLimiter } from "../../../../src/resilience/adaptive-limiter.js";
import { ChainSource } from "../../../../src/transfers/sources/chain/chain-source.js";
import { ResumableLogScanner } from "../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { SearchedBlocks } from "../../../../src/transfers/sources/chain/searched-blocks.js";
import { LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import { WithdrawalFinder } from "../../../../src/transfers/withdrawals/withdrawal-finder.js";
import {
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
} from "../../../support/stubs/transfer-fixtures.js";
import { SettlementWorld } from "./settlement-world.js";

// What a withdrawal costs, its status included, on endpoints that search all blocks at once and without an index.

/** Turns of the event loop after which everything waits for the chains: nothing else is asynchronous here. */
const TURNS_PER_ROUND = 20;

/** Answers the requests of chains in rounds: all that wait are answered together, when nothing else happens. */
class Rounds {
  count = 0;
  requests = 0;
  #waiting: (() => void)[] = [];

  wrap(client: ChainClient): ChainClient {
    const wait = (): Promise<void> => {
      this.requests += 1;
      return new Promise((resolve) => this.#waiting.push(resolve));
    };
    return {
      slug: client.slug,
      send: (...call) => wait().then(() => client.send(...call)),
      sendBatch: (...call) => wait().then(() => client.sendBatch(...call)),
      getLogs: (...call) => wait().then(() => client.getLogs(...call)),
    };
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const end = (): void => {
      isDone = true;
    };
    work.then(end, end);
    while (!isDone) {
      for (let turn = 0; turn < TURNS_PER_ROUND; turn += 1) await flushEventLoop();
      if (this.#waiting.length > 0) this.count += 1;
      for (const answer of this.#waiting.splice(0)) answer();
    }
    return work;
  }
}

test.each(["hash", "ID"])("a proof by %s takes at most 25 requests in 6 rounds", async (name) => {
  const world = new SettlementWorld();
  for (let index = 0; index < 30; index += 1) world.send(1_000 + index);
  world.arrive(world.commit(1_100));
  const sent = world.toTransfer(world.sends[17] ?? world.send(1_050));
  const rounds = new Rounds();
  const clients = new Map<string, ChainClient>();
  const chains = {
    hasCustomEndpoint: () => false,
    getClient(slug: string): ChainClient {
      const isBridged = slug === "optimism" || slug === "arbitrum";
      const client =
        clients.get(slug) ?? rounds.wrap(isBridged ? world.getClient(slug) : createTransferChainStub(slug).client);
      clients.set(slug, client);
      return client;
    },
  };
  const closing = new AbortController().signal;
  const now = () => 1;
  const logScanner = new ResumableLogScanner(closing, now);
  const caches = { logScanner, blockTimes: new BlockFinder(now), searchedBlocks: new SearchedBlocks(now) };
  const source = new ChainSource(caches, new FinalityTracker(now, now), now);
  const finder = new WithdrawalFinder({
    ...{ logScanner, budgets: new LookupBudgets({ now }), limiter: new AdaptiveLimiter(now), closing, now },
    ...{ attestations: undefined, findIndexedTree: undefined, timeoutMs: 10_000, onFailedCheck() {} },
  });
  const context = createLookupContext({ chains });
  const query = {
    transactionHash: name === "hash" ? sent.transactionHash : undefined,
    transferId: name === "hash" ? undefined : sent.id,
  };
  const find = async () => {
    const status = await source.resolve(query, context);
    if (status === undefined) throw new Error("the transfer was not found");
    return finder.find(status, context);
  };
  expect(await rounds.run(find())).toMatchObject({ state: "WITHDRAWABLE", proof: { treeIndex: 17, totalLeaves: 30 } });
  expect(rounds.requests).toBeLessThanOrEqual(25);
  expect(rounds.count).toBeLessThanOrEqual(6);
});
