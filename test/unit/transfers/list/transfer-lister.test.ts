import { afterEach, beforeAll, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import { hexToBytes } from "../../../../src/transfers/index/store/hex.js";
import { type IndexHandle, openIndex } from "../../../../src/transfers/index/store/open-index.js";
import { LIST_START } from "../../../../src/transfers/index/store/pages/transfer-page.js";
import { openSqlite } from "../../../../src/transfers/index/store/sqlite/sqlite.js";
import { createSqliteSource } from "../../../../src/transfers/index/store/sqlite/sqlite-statements.js";
import { createTransferLister } from "../../../../src/transfers/list/transfer-lister.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
import { getChain, hashFromName, mainnetNetwork } from "../index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../index/support/index-rows.js";
import { ACCOUNT, createIndexWriter, createListHarness, NOW_MS } from "./list-harness.js";

const folder = useTemporaryFolder();
const close: (() => void)[] = [];
let index: IndexHandle;
beforeAll(async () => {
  index = await openIndex(`${folder()}/index`, mainnetNetwork);
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

test("is covered from when the last chain is, which is now while one is not indexed", async () => {
  const { readPage } = createListHarness(index);
  expect(await readPage({}, undefined, 1)).toMatchObject({ coveredFromSeconds: NOW_MS / 1_000 });
  const complete = await openIndex(`${folder()}/complete`, mainnetNetwork);
  close.push(complete.close);
  const writer = createIndexWriter(complete);
  await writer.initialize([...mainnetNetwork.chains.values()].map(({ chainId }) => chainId));
  expect(await createListHarness(complete).readPage({}, undefined, 1)).toMatchObject({
    transfers: [],
    next: undefined,
    coveredFromSeconds: 1_700_000_001,
  });
});

test("a page that a filter leaves nearly empty ends after a thousand rows", async () => {
  const large = await openIndex(`${folder()}/large`, mainnetNetwork);
  close.push(large.close);
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
    const batches = await openIndex(`${folder()}/batches-${count}-${pageSize}`, mainnetNetwork);
    close.push(batches.close);
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
  const readIndex: Parameters<typeof createTransferLister>[0]["readIndex"] = (query) => {
    reads += 1;
    caller.abort(new Error("gone"));
    return query(index.reader);
  };
  const lister = createTransferLister({ readIndex, network: mainnetNetwork, now: () => NOW_MS });
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
  const lister = createTransferLister({
    async readIndex(query) {
      reads += 1;
      return query(index.reader);
    },
    network: mainnetNetwork,
    now: () => NOW_MS,
  });
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
  const sourceAlone = await openIndex(`${folder()}/source`, mainnetNetwork);
  close.push(sourceAlone.close);
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
  const broken = createTransferLister({
    readIndex,
    network: mainnetNetwork,
    now: () => NOW_MS,
  });
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
  const connection = await openSqlite(`${folder()}/index`, {
    readonly: true,
    verbose: (sql) => executed.push(String(sql)),
  });
  close.push(() => connection.close());
  createSqliteSource(connection, mainnetNetwork).statements.page({
    ...{ account: ACCOUNT, after: LIST_START, rows: 10, limit: 10, filter: {} },
  });
  const plan = connection
    .prepare<[], { detail: string }>(`explain query plan ${executed[0]}`)
    .all()
    .map(({ detail }) => detail);
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
