import { expect, test } from "vitest";
import type { TransferFilter } from "../../../../../src/transfers/index/list/transfer-lister.js";
import { useTestIndexes } from "../../../../support/index/open-index.js";
import { createTiedSends, expectExactPages, TIED_CHAIN_IDS } from "../../../../support/index/paging.js";
import { createRandom, createRandomEvents, listQueries } from "../../../../support/index/random-events.js";
import { writeEvents } from "../../../../support/index/write-events.js";
import { getChain } from "../support/hop-events.js";
import { createListHarness } from "./list-harness.js";

const indexes = useTestIndexes();

test("pages of sends with the same time, transaction and key are exact", async () => {
  const index = await indexes.open();
  const sends = createTiedSends();
  await writeEvents(index.store, { sends, deliveries: [], commits: [] }, TIED_CHAIN_IDS);
  const { reader } = index;
  await expectExactPages(async (request) => reader.readPage(request), sends);
});

const FILTERS: readonly Partial<TransferFilter>[] = [
  { token: "ETH" },
  { state: "BONDED" },
  { state: "PENDING" },
  { state: "UNBONDABLE" },
  { source: getChain("ethereum") },
  { destination: getChain("ethereum"), state: "PENDING" },
  { source: getChain("optimism"), destination: getChain("arbitrum"), token: "USDC", state: "BONDED" },
];

test.each([1, 2])("a filter gives what matches of the whole list, seed %i", async (seed) => {
  const index = await indexes.open();
  const { chainIds, ...events } = createRandomEvents(createRandom(seed), 500);
  await writeEvents(index.store, events, chainIds);
  const { readAll } = createListHarness(index);
  let listed = 0;
  for (const account of listQueries(events).accounts.slice(0, 2)) {
    const all = (await readAll({ account }, 1_000)).flat();
    expect(all.length).toBeGreaterThan(100);
    for (const filter of FILTERS) {
      const { state, token, source, destination } = filter;
      const expected = all.filter(
        ({ sent, ...status }) =>
          (token === undefined || sent.token === token) &&
          (source === undefined || sent.source === source) &&
          (destination === undefined || sent.destination === destination) &&
          (state === undefined || status.state === state),
      );
      for (const pageSize of [3, 50])
        expect((await readAll({ account, ...filter }, pageSize)).flat()).toEqual(expected);
      listed += expected.length;
    }
  }
  expect(listed).toBeGreaterThan(300);
});
