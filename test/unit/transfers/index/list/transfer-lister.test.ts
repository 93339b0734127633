import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { hexToBytes } from "../../../../../src/chain/hex.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import {
  LIST_START,
  type TransferFilter,
  TransferLister,
} from "../../../../../src/transfers/index/list/transfer-lister.js";
import type { TransferIndex } from "../../../../../src/transfers/index/transfer-index.js";
import { openIndex } from "../../../../support/index/open-index.js";
import { explainQuery, openRecordedIndex } from "../../../../support/index/recorded-statements.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { getChain, hashFromName, mainnetNetwork } from "../support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../support/index-rows.js";
import { ACCOUNT, createIndexWriter, createListHarness, NOW_MS } from "./list-harness.js";

const folder = useTemporaryFolder();
const close: (() => void)[] = [];
let index: TransferIndex;
beforeAll(async () => {
  index = await openIndex(`${folder()}/index`);
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
afterEach(() => {
  for (const end of close.splice(0)) end();
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

test("has the states that the index knows", async () => {
  const { readAll } = createListHarness(index);
  const bonded = (await readAll({ state: "BONDED" }, 2)).flat();
  expect(bonded.map(({ sent }) => sent.id).toSorted()).toEqual(
    [101, 102, 103].map((number) => hashFromName(`${number}`)).toSorted(),
  );
  expect(bonded[0]).toMatchObject({ source: "index", delivery: { transactionHash: expect.any(String) } });
  expect((await readAll({ state: "PENDING" })).flat()).toHaveLength(247);
  expect((await readAll({ state: "UNBONDABLE" })).flat()).toEqual([]);
});

test("filters by token and by both chains", async () => {
  const { readAll } = createListHarness(index);
  expect((await readAll({ token: "DAI" }, 7)).flat()).toHaveLength(50);
  expect((await readAll({ source: getChain("optimism"), destination: getChain("arbitrum") })).flat()).toHaveLength(250);
  expect((await readAll({ source: getChain("base") })).flat()).toEqual([]);
  expect((await readAll({ destination: getChain("base") })).flat()).toEqual([]);
});

describe("the coverage of a list", () => {
  const context = { caller: "caller", signal: new AbortController().signal };
  const any = { account: ACCOUNT, state: undefined, token: undefined, source: undefined, destination: undefined };
  const [optimism, arbitrum, base] = [getChain("optimism"), getChain("arbitrum"), getChain("base")];
  const allChainIds = [...mainnetNetwork.chains.values()].map(({ chainId }) => chainId);

  /** Creates an index that has read the block 2 of these chains. */
  async function openRead(name: string, chainIds: readonly number[]) {
    const opened = await openIndex(`${folder()}/${name}`);
    close.push(() => opened.close());
    const writer = createIndexWriter(opened);
    await writer.initialize(chainIds);
    for (const chainId of chainIds) await writer.advance(chainId, 2, {});
    const { lister } = createListHarness(opened);
    const readCoverage = (filter: Partial<TransferFilter> = {}) => lister.readCoverage({ ...any, ...filter }, context);
    return { opened, writer, readCoverage };
  }

  test("is of the chain that is read since the latest time, and of the one whose newest block is oldest", async () => {
    const { writer, readCoverage } = await openRead("all", allChainIds);
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
    const { writer, readCoverage } = await openRead("complete", allChainIds);
    for (const chainId of allChainIds) await writer.prepend(chainId, 0, {}, 0);
    expect(readCoverage()).toEqual({ fromSeconds: 1_623_888_000, untilSeconds: 1_700_000_002 });
  });

  test("is not limited by a young chain whose whole history is read", async () => {
    const { writer, readCoverage } = await openRead("young", allChainIds);
    for (const chainId of allChainIds)
      await writer.prepend(chainId, 0, {}, chainId === base.chainId ? 1_690_000_000 : 1_630_000_000);
    expect(readCoverage()).toMatchObject({ fromSeconds: 1_623_888_000 });
  });

  test("is refused while a chain that the filters can touch is not read, and names it", async () => {
    const { writer, readCoverage } = await openRead("two", [OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
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

test("a page that a filter leaves nearly empty ends after a thousand rows", async () => {
  const large = await openIndex(`${folder()}/large`);
  close.push(() => large.close());
  const writer = createIndexWriter(large);
  await writer.initialize([OPTIMISM_CHAIN_ID]);
  const own = hexToBytes(ACCOUNT);
  const sends = Array.from({ length: 2_500 }, (_, number) =>
    createSendRow(bytesFromName(`${number}`), `sends ${number}`, {
      account: own,
      token: number === 0 ? "DAI" : "USDT",
    }),
  );
  await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends });
  const { readAll } = createListHarness(large);
  const pages = await readAll({ token: "DAI" }, 10);
  expect(pages).toHaveLength(3);
  expect(idsOf(pages)).toEqual([hashFromName("0")]);
});

test.each([
  [300, 50, Math.ceil(10_000 / 299)],
  [300, 250, Math.ceil(10_000 / 299)],
  [126, 90, 80],
])(
  "of %i transfers of a transaction, a page of %i ends after 10,000 IDs of others",
  async (count, pageSize, length) => {
    const batches = await openIndex(`${folder()}/batches-${count}-${pageSize}`);
    close.push(() => batches.close());
    const writer = createIndexWriter(batches);
    await writer.initialize([OPTIMISM_CHAIN_ID]);
    const own = hexToBytes(ACCOUNT);
    const sends = Array.from({ length: count }, (_, number) =>
      createSendRow(bytesFromName(`${number}`), "sends all", { account: own, log_index: number }),
    );
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends });
    const pages = await createListHarness(batches).readAll({}, pageSize);
    expect(pages[0]).toHaveLength(length);
    // The next page goes on there.
    expect(new Set(idsOf(pages)).size).toBe(count);
    expect(idsOf(pages)).toHaveLength(count);
  },
);

test("a large page ends when its caller leaves", async () => {
  let reads = 0;
  const caller = new AbortController();
  const readIndex: ConstructorParameters<typeof TransferLister>[0] = (query) => {
    reads += 1;
    caller.abort(new Error("gone"));
    return query(index.reader);
  };
  const lister = new TransferLister(readIndex, mainnetNetwork);
  const filter = { account: ACCOUNT, state: undefined, token: undefined, source: undefined, destination: undefined };
  await expect(lister.list(filter, undefined, 250, { caller: "caller", signal: caller.signal })).rejects.toThrow(
    "gone",
  );
  expect(reads).toBe(1);
});

test("answers small pages at once, and large ones between other work", () => {
  const { lister } = createListHarness(index);
  const context = { caller: "caller", signal: new AbortController().signal };
  const filter = { account: ACCOUNT, state: undefined, token: undefined, source: undefined, destination: undefined };
  expect(lister.list(filter, undefined, 99, context)).not.toBeInstanceOf(Promise);
  expect(lister.list(filter, undefined, 200, context)).toBeInstanceOf(Promise);
});

test("reads nothing for large pages that wait, and lets callers take turns", async () => {
  let reads = 0;
  const readIndex: ConstructorParameters<typeof TransferLister>[0] = async (query) => {
    reads += 1;
    return query(index.reader);
  };
  const lister = new TransferLister(readIndex, mainnetNetwork);
  const any = { state: undefined, token: undefined, source: undefined, destination: undefined };
  const signal = new AbortController().signal;
  const order: string[] = [];
  const request = async (caller: string, filter: object, pageSize: number): Promise<void> => {
    await lister.list({ account: ACCOUNT, ...any, ...filter }, undefined, pageSize, { caller, signal });
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
  const context = { caller: "caller", signal: new AbortController().signal };
  const [transfer] = (await readPage({}, undefined, 1)).transfers;
  if (transfer === undefined) throw new Error("no transfer");
  const { id, transactionHash } = transfer.sent;
  expect(await lister.find(id, transactionHash, context)).toEqual([transfer]);
  expect(await lister.find(id, hashFromName("another"), context)).toEqual([]);
  expect(await lister.find(hashFromName("another"), transactionHash, context)).toEqual([]);
});

test("has the time of the newest block of the destination, or none", async () => {
  const { readPage } = createListHarness(index);
  const [transfer] = (await readPage({}, undefined, 1)).transfers;
  expect(transfer).toMatchObject({ state: "PENDING", observedAtMs: NOW_MS });
  const sourceAlone = await openIndex(`${folder()}/source`);
  close.push(() => sourceAlone.close());
  const writer = createIndexWriter(sourceAlone);
  await writer.initialize([OPTIMISM_CHAIN_ID]);
  await writer.advance(OPTIMISM_CHAIN_ID, 2, {
    sends: [createSendRow(bytesFromName("a"), "sends a", { account: hexToBytes(ACCOUNT) })],
  });
  const [alone] = (await createListHarness(sourceAlone).readPage({}, undefined, 1)).transfers;
  expect(alone).toMatchObject({ state: "PENDING", observedAtMs: 0 });
});

test("tells which network is indexed", () => {
  const { lister } = createListHarness(index);
  expect([lister.isIndexed(mainnetNetwork), lister.isIndexed(getNetwork("goerli"))]).toEqual([true, false]);
});

const diskError = new Error("disk I/O error");
test.each<[string, () => never | Promise<never>]>([
  [
    "at once",
    () => {
      throw diskError;
    },
  ],
  ["later", () => Promise.reject(diskError)],
])("an index that fails %s is no empty list", async (_, readIndex) => {
  const filter = { account: ACCOUNT, state: undefined, token: undefined, source: undefined, destination: undefined };
  const context = { caller: "caller", signal: new AbortController().signal };
  const broken = new TransferLister(readIndex, mainnetNetwork);
  const unreadable = expect.objectContaining({
    reason: "UPSTREAM_UNAVAILABLE",
    message: "the index cannot be read",
    cause: diskError,
  });
  const list = async (pageSize: number) => broken.list(filter, undefined, pageSize, context);
  await expect(list(10)).rejects.toEqual(unreadable);
  await expect(list(200)).rejects.toEqual(unreadable);
  await expect((async () => broken.find("", "", context))()).rejects.toEqual(unreadable);
});

test("the statement of a page walks the indexes of senders and recipients, and reads the rows of the page", async () => {
  const executed: string[] = [];
  const recorded = await openRecordedIndex(`${folder()}/index`, executed);
  close.push(() => recorded.close());
  await recorded.reader.readPage({ account: ACCOUNT, after: LIST_START, rows: 10, limit: 10, filter: {} });
  const plan = await explainQuery(`${folder()}/index`, executed[0]);
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
