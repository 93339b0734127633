import { expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import {
  createLookupContext,
  createTransferChainStub,
  flushEventLoop,
} from "../../../support/stubs/transfer-fixtures.js";
import { createTestChainSource } from "../sources/chain/search-fixtures.js";
import { createWithdrawalFinder, SettlementWorld } from "./settlement-world.js";

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
  const source = createTestChainSource(() => 1);
  const { finder } = createWithdrawalFinder();
  const context = createLookupContext({ chains });
  const [hash, id] = name === "hash" ? [sent.transactionHash, undefined] : [undefined, sent.id];
  const find = async () => {
    const status = await source.resolve({ transactionHash: hash, transferId: id }, context);
    if (status === undefined) throw new Error("the transfer was not found");
    return finder.find(status, context);
  };
  expect(await rounds.run(find())).toMatchObject({ state: "WITHDRAWABLE", proof: { treeIndex: 17, totalLeaves: 30 } });
  expect(rounds.requests).toBeLessThanOrEqual(25);
  expect(rounds.count).toBeLessThanOrEqual(6);
});
