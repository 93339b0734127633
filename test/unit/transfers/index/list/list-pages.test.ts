import { afterEach, expect, test } from "vitest";
import { mapMaybeAsync } from "../../../../../src/resilience/maybe-async.js";
import type { IndexReader } from "../../../../../src/transfers/index/index-reader.js";
import { type TransferFilter, TransferLister } from "../../../../../src/transfers/index/list/transfer-lister.js";
import type { TransferIndex } from "../../../../../src/transfers/index/transfer-index.js";
import { openIndex } from "../../../../support/index/open-index.js";
import { createTiedSends, expectExactPages, TIED_CHAIN_IDS } from "../../../../support/index/paging.js";
import { createRandom, createRandomEvents, listQueries } from "../../../../support/index/random-events.js";
import { writeEvents } from "../../../../support/index/write-events.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { getChain, mainnetNetwork } from "../support/hop-events.js";
import { createListHarness } from "./list-harness.js";

const folder = useTemporaryFolder();
let index: TransferIndex | undefined;
afterEach(() => index?.close());

test("pages of sends with the same time, transaction and key are exact", async () => {
  index = await openIndex(`${folder()}/tied`);
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
  index = await openIndex(`${folder()}/filtered-${seed}`);
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

test("a filter that nothing matches takes two reads of a thousand rows", async () => {
  index = await openIndex(`${folder()}/read`);
  const { reader } = index;
  const { chainIds, ...events } = createRandomEvents(createRandom(4), 3_000);
  await writeEvents(index.store, events, chainIds);
  const rows: number[] = [];
  let returned = 0;
  const readPage: IndexReader["readPage"] = (request) =>
    mapMaybeAsync(reader.readPage(request), (page) => {
      rows.push(page.rows);
      returned += page.entries.length;
      return page;
    });
  const counting = {
    readPage,
    findByTransferId: () => [],
    readCoverage: () => reader.readCoverage(),
  };
  const lister = new TransferLister((query) => query(counting), mainnetNetwork);
  const [account = ""] = listQueries(events).accounts;
  const filter = { account, state: undefined, token: "none", source: undefined, destination: undefined };
  const list = await lister.list(filter, undefined, 10, { caller: "", signal: new AbortController().signal });
  expect(list).toMatchObject({ transfers: [], next: { timestamp: expect.any(Number) } });
  expect(rows).toEqual([100, 900]);
  expect(returned).toBeLessThanOrEqual(2);
});
