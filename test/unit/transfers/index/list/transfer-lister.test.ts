import { beforeAll, describe, expect, test } from "vitest";
import { hexToBytes } from "../../../../../src/chain/hex.js";
import type { IndexDatabase } from "../../../../../src/transfers/index/database/index-database.js";
import {
  LIST_START,
  type TransferFilter,
  TransferLister,
} from "../../../../../src/transfers/index/list/transfer-lister.js";
import { closeAfterTest } from "../../../../support/close-after-test.js";
import { type FileIndex, openIndex, useTestIndexes } from "../../../../support/index/open-index.js";
import { explainQuery, openRecordedIndex } from "../../../../support/index/recorded-statements.js";
import { getChain, hashFromName, mainnetNetwork } from "../support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../support/index-rows.js";
import { ACCOUNT, ANY, createIndexWriter, createListHarness, NOW_MS, REQUESTER } from "./list-harness.js";

const indexes = useTestIndexes();
let index: FileIndex;
beforeAll(async () => {
  index = await openIndex(indexes.createPath());
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
  const own = hexToBytes(ACCOUNT);
  const send = (number: number) => {
    const [side, token] = [number % 3 === 0 ? { recipient: own } : { account: own }, number % 5 === 0 ? "DAI" : "USDT"];
    const both = number % 7 === 0 ? { account: own, recipient: own } : {};
    const block = { block_number: 2 + number, timestamp: 1_700_000_002 + Math.floor(number / 2) };
    return createSendRow(bytesFromName(`${number}`), `sends ${number}`, { ...side, ...both, ...block, token });
  };
  const foreign = createSendRow(bytesFromName("foreign"), "sends foreign", { block_number: 3 });
  const sends = Array.from({ length: 250 }, (_, number) => send(number));
  await writer.advance(OPTIMISM_CHAIN_ID, 300, { sends: [...sends, foreign] });
  const deliveries = [101, 102, 103].map((number) =>
    createDeliveryRow(bytesFromName(`${number}`), `bonds ${number}`, 4),
  );
  await writer.advance(ARBITRUM_CHAIN_ID, 10, { deliveries });
  return () => index.close();
});

const idsOf = (pages: readonly (readonly { sent: { id: string } }[])[]) => pages.flat().map(({ sent }) => sent.id);

test("lists what an account sent and what it receives, each once, newest first", async () => {
  const { readAll } = createListHarness(index);
  const pages = await readAll({}, 40);
  expect(pages.map((page) => page.length)).toEqual([40, 40, 40, 40, 40, 40, 10]);
  const transfers = pages.flat();
  expect(new Set(idsOf(pages))).toEqual(new Set(Array.from({ length: 250 }, (_, number) => hashFromName(`${number}`))));
  const times = transfers.map(({ sent }) => sent.timestamp);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
});

test.each([1, 49, 50, 99, 100, 101, 249, 250, 251, 1_000])("pages of %i have the same transfers", async (pageSize) => {
  const { readAll } = createListHarness(index);
  const pages = await readAll({}, pageSize);
  expect(idsOf(pages)).toEqual(idsOf(await readAll({}, 40)));
  expect(pages).toHaveLength(Math.ceil(250 / pageSize));
});

describe("the coverage of a list", () => {
  const [optimism, arbitrum, base] = [getChain("optimism"), getChain("arbitrum"), getChain("base")];
  const allChainIds = [...mainnetNetwork.chains.values()].map(({ chainId }) => chainId);

  /** Creates an index that has read the block 2 of these chains. */
  async function openRead(chainIds: readonly number[]) {
    const opened = await indexes.open();
    const writer = createIndexWriter(opened);
    await writer.initialize(chainIds);
    for (const chainId of chainIds) await writer.advance(chainId, 2, {});
    const { lister } = createListHarness(opened);
    const readCoverage = (filter: Partial<TransferFilter> = {}) =>
      lister.readCoverage({ ...ANY, ...filter }, REQUESTER);
    return { writer, readCoverage };
  }

  test("is of the chain that is read since the latest time, and of the one whose newest block is oldest", async () => {
    const { writer, readCoverage } = await openRead(allChainIds);
    await writer.advance(OPTIMISM_CHAIN_ID, 90, {});
    await writer.advance(ARBITRUM_CHAIN_ID, 70, {});
    await writer.prepend(ARBITRUM_CHAIN_ID, 0, {});
    expect(readCoverage()).toEqual({ fromSeconds: 1_700_000_001, untilSeconds: 1_700_000_002 });
    expect(readCoverage({ source: optimism, destination: arbitrum })).toEqual({
      fromSeconds: 1_700_000_001,
      untilSeconds: 1_700_000_070,
    });
  });

  test("is never from 0, although older versions stored that for a complete history", async () => {
    const { writer, readCoverage } = await openRead(allChainIds);
    for (const chainId of allChainIds) await writer.prepend(chainId, 0, {}, 0);
    expect(readCoverage()).toEqual({ fromSeconds: 1_623_888_000, untilSeconds: 1_700_000_002 });
  });

  test("is not limited by a young chain whose whole history is read", async () => {
    const { writer, readCoverage } = await openRead(allChainIds);
    for (const chainId of allChainIds)
      await writer.prepend(chainId, 0, {}, chainId === base.chainId ? 1_690_000_000 : 1_630_000_000);
    expect(readCoverage()).toMatchObject({ fromSeconds: 1_623_888_000 });
  });

  test("is refused while a chain that the filters can touch is not read, and names it", async () => {
    const { writer, readCoverage } = await openRead([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
    // The range is still empty: the chain stopped to answer after its first response.
    await writer.initialize([base.chainId]);
    const refuse = (filter: Partial<TransferFilter>, chains: string) =>
      expect(() => readCoverage(filter)).toThrow(
        expect.objectContaining({
          reason: "UPSTREAM_UNAVAILABLE",
          message: expect.stringMatching(
            new RegExp(`^the index has not read ${chains} yet; fromChain and toChain narrow the list`),
          ),
        }),
      );
    refuse({}, "ethereum, gnosis, polygon, nova, base, linea, polygonzk");
    refuse({ source: optimism }, "ethereum, .*base, linea, polygonzk");
    refuse({ token: "SNX" }, "ethereum");
    refuse({ source: optimism, destination: base }, "base");
    refuse({ source: base, destination: optimism }, "base");
    const narrow = { source: arbitrum, destination: optimism };
    expect(readCoverage(narrow)).toMatchObject({ untilSeconds: 1_700_000_002 });
  });
});

/** Opens an index of sends of the account, numbered from 0 on. */
async function openSends(count: number, create: (number: number) => readonly [transaction: string, more: object]) {
  const opened = await indexes.open();
  const writer = createIndexWriter(opened);
  await writer.initialize([OPTIMISM_CHAIN_ID]);
  const sends = Array.from({ length: count }, (_, number) => {
    const [transaction, more] = create(number);
    return createSendRow(bytesFromName(`${number}`), transaction, { account: hexToBytes(ACCOUNT), ...more });
  });
  await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends });
  return createListHarness(opened);
}

test("a page that a filter leaves nearly empty ends after a thousand rows", async () => {
  const { readAll } = await openSends(2_500, (number) => [`sends ${number}`, { token: number === 0 ? "DAI" : "USDT" }]);
  const pages = await readAll({ token: "DAI" }, 10);
  expect(pages).toHaveLength(3);
  expect(idsOf(pages)).toEqual([hashFromName("0")]);
});

test.each([
  [300, 50, Math.ceil(10_000 / 299)],
  [300, 250, Math.ceil(10_000 / 299)],
  [126, 90, 80],
])("of %i transfers of a transaction, a page of %i ends after 10,000 IDs of others", async (count, size, length) => {
  const { readAll } = await openSends(count, (number) => ["sends all", { log_index: number }]);
  const pages = await readAll({}, size);
  expect(pages[0]).toHaveLength(length);
  // The next page goes on there.
  expect(new Set(idsOf(pages)).size).toBe(count);
  expect(idsOf(pages)).toHaveLength(count);
});

test("a large page ends when its caller leaves", async () => {
  let reads = 0;
  const caller = new AbortController();
  const admit: IndexDatabase["admit"] = (_, read) => {
    reads += 1;
    caller.abort(new Error("gone"));
    return read();
  };
  const lister = new TransferLister({ database: { admit }, reader: index.reader }, mainnetNetwork);
  await expect(lister.list(ANY, undefined, 250, { ...REQUESTER, signal: caller.signal })).rejects.toThrow("gone");
  expect(reads).toBe(1);
});

test("answers small pages at once, and large ones between other work", () => {
  const { lister } = createListHarness(index);
  expect(lister.list(ANY, undefined, 99, REQUESTER)).not.toBeInstanceOf(Promise);
  expect(lister.list(ANY, undefined, 200, REQUESTER)).toBeInstanceOf(Promise);
});

test("reads nothing for large pages that wait, and lets callers take turns", async () => {
  let reads = 0;
  const admit: IndexDatabase["admit"] = async (_, read) => {
    reads += 1;
    return read();
  };
  const lister = new TransferLister({ database: { admit }, reader: index.reader }, mainnetNetwork);
  const order: string[] = [];
  const request = async (caller: string, filter: object, pageSize: number): Promise<void> => {
    await lister.list({ ...ANY, ...filter }, undefined, pageSize, { ...REQUESTER, caller });
    order.push(caller);
  };
  const greedy = Array.from({ length: 80 }, (_, number) =>
    number % 2 === 0 ? request("greedy", {}, 250) : request("greedy", { state: "BONDED" }, 50),
  );
  const modest = request("modest", {}, 250);
  expect(reads).toBeLessThanOrEqual(4);
  await Promise.all([...greedy, modest]);
  expect(order.indexOf("modest")).toBeLessThan(20);
});

test("finds the transfers of a transaction that have an ID", async () => {
  const { lister, readPage } = createListHarness(index);
  const [transfer] = (await readPage({}, undefined, 1)).transfers;
  if (transfer === undefined) throw new Error("no transfer");
  const { id, transactionHash } = transfer.sent;
  expect(await lister.find(id, transactionHash, REQUESTER)).toEqual([transfer]);
  expect(await lister.find(id, hashFromName("another"), REQUESTER)).toEqual([]);
  expect(await lister.find(hashFromName("another"), transactionHash, REQUESTER)).toEqual([]);
});

test("has the time of the newest block of the destination, or none", async () => {
  const { readPage } = createListHarness(index);
  const [transfer] = (await readPage({}, undefined, 1)).transfers;
  expect(transfer).toMatchObject({ state: "PENDING", observedAtMs: NOW_MS });
  const sourceAlone = await openSends(1, () => ["sends a", {}]);
  const [alone] = (await sourceAlone.readPage({}, undefined, 1)).transfers;
  expect(alone).toMatchObject({ state: "PENDING", observedAtMs: 0 });
});

const diskError = new Error("disk I/O error");
const failAtOnce = (): never => {
  throw diskError;
};
test.each<[string, () => Promise<never>]>([
  ["at once", failAtOnce],
  ["later", () => Promise.reject(diskError)],
])("an index that fails %s is no empty list", async (_, admit) => {
  const broken = new TransferLister({ database: { admit }, reader: index.reader }, mainnetNetwork);
  const error = { reason: "UPSTREAM_UNAVAILABLE", message: "the index cannot be read", cause: diskError };
  const unreadable = expect.objectContaining(error);
  const list = async (pageSize: number) => broken.list(ANY, undefined, pageSize, REQUESTER);
  await expect(list(10)).rejects.toEqual(unreadable);
  await expect(list(200)).rejects.toEqual(unreadable);
  await expect((async () => broken.find("", "", REQUESTER))()).rejects.toEqual(unreadable);
});

test("the statement of a page walks the indexes of senders and recipients, and reads the rows of the page", async () => {
  const executed: string[] = [];
  const recorded = closeAfterTest(await openRecordedIndex(index.file, executed));
  await recorded.reader.readPage({ account: ACCOUNT, after: LIST_START, rows: 10, limit: 10, filter: {} });
  const plan = await explainQuery(index.file, executed[0]);
  const whetherAlone = [
    expect.stringMatching(/^SEARCH o USING INDEX sends_arrival_key /),
    expect.stringMatching(/^SEARCH e USING COVERING INDEX deliveries_arrival_key /),
  ];
  const searches = plan.filter((detail) => /^(SEARCH|SCAN) (?!\(|[apru]$)/.test(detail));
  expect(searches).toEqual([
    expect.stringMatching(/^SEARCH sends USING INDEX sends_account_time \(account=\? AND <expr><\?\)/),
    expect.stringMatching(/^SEARCH sends USING INDEX sends_recipient_time \(recipient=\? AND <expr><\?\)/),
    // Of those, it looks at the ones that may match.
    "SCAN v",
    expect.stringMatching(/^SEARCH e USING COVERING INDEX deliveries_arrival_key /),
    expect.stringMatching(/^SEARCH e USING INDEX deliveries_arrival_key /),
    expect.stringMatching(/^SEARCH s USING INTEGER PRIMARY KEY /),
    expect.stringMatching(/^SEARCH d USING INDEX deliveries_arrival_key /),
    ...whetherAlone,
    ...["sc", "dc"].map((name) => expect.stringContaining(`SEARCH ${name} USING INDEX sqlite_autoindex_cursors_1`)),
    expect.stringMatching(/^SEARCH t USING COVERING INDEX sends_transaction_hash /),
    ...whetherAlone,
  ]);
});
