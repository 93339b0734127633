import { afterEach, expect, test } from "vitest";
import { AdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { SingleFlight } from "../../../src/resilience/single-flight.js";
import type { EventRows } from "../../../src/transfers/index/database/schema.js";
import type { TransferIndex } from "../../../src/transfers/index/transfer-index.js";
import { IndexLookup } from "../../../src/transfers/sources/index-lookup.js";
import type { TransferStatus } from "../../../src/transfers/status.js";
import { StatusCache } from "../../../src/transfers/status-cache.js";
import { openIndex } from "../../support/index/open-index.js";
import { createLookupContext } from "../../support/stubs/transfer-fixtures.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";
import { hashFromName, mainnetNetwork } from "./index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "./index/support/index-rows.js";

// The cached status of an indexed transfer, while the index changes below it.

const folder = useTemporaryFolder();
const open: TransferIndex[] = [];
afterEach(() => {
  for (const index of open.splice(0)) index.close();
});

const NO_ROWS: EventRows = { sends: [], deliveries: [], commits: [] };
const START_MS = 1_700_000_000_000;

let fileCount = 0;
async function setup() {
  let elapsedMs = 1_000_000;
  let reads = 0;
  const now = () => START_MS + elapsedMs;
  const index = await openIndex(`${folder()}/index-${fileCount++}`);
  open.push(index);
  const source = new IndexLookup(
    (query) => {
      reads += 1;
      return query(index.reader);
    },
    mainnetNetwork,
    now,
    () => 60 * 60_000,
  );
  const cache = new StatusCache({
    index: source,
    resolver: { resolve: () => Promise.reject(new Error("the index does not know the transfer")) },
    singleFlight: new SingleFlight(new AbortController().signal),
    limiter: new AdaptiveLimiter(() => elapsedMs),
    timeoutMs: 10_000,
    now: () => elapsedMs,
  });
  const block = (number: number) => ({ number, hash: hashFromName(`block ${number}`), timestamp: START_MS / 1_000 });
  for (const chainId of [OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]) await index.store.initializeCursor(chainId, block(0));
  async function readCursor(chainId: number) {
    const cursor = await index.store.readCursor(chainId);
    if (cursor === undefined) throw new Error("the index has no cursor");
    return cursor;
  }
  return {
    /** Asks twice, since a status is cached when it is asked for again. */
    async findTwice(): Promise<TransferStatus | undefined> {
      const query = { transferId: hashFromName("a"), transactionHash: undefined };
      const context = createLookupContext({ network: mainnetNetwork });
      await cache.find(query, context);
      return cache.find(query, context);
    },
    /** Adds rows up to a block. */
    async advance(chainId: number, number: number, isFinal: boolean, rows = NO_ROWS) {
      const options = { to: block(number), isFinal, observedAtMs: now() };
      await index.store.advance(await readCursor(chainId), rows, options);
    },
    async rollBack(chainId: number, number: number) {
      await index.store.rollBack(await readCursor(chainId), block(number));
    },
    advanceTime: (ms: number) => {
      elapsedMs += ms;
    },
    readCount: () => reads,
  };
}

const SENT: EventRows = { sends: [createSendRow(bytesFromName("a"), "sends a")], deliveries: [], commits: [] };
const delivered = (transaction: string, block: number): EventRows => ({
  sends: [],
  commits: [],
  deliveries: [createDeliveryRow(bytesFromName("a"), transaction, block)],
});

test("an undone delivery, and the one that replaces it, are seen a second later", async () => {
  const { findTwice, advance, rollBack, advanceTime } = await setup();
  await advance(OPTIMISM_CHAIN_ID, 1, true, SENT);
  await advance(ARBITRUM_CHAIN_ID, 1, true);
  expect(await findTwice()).toMatchObject({ state: "PENDING", source: "index" });
  await advance(ARBITRUM_CHAIN_ID, 2, false, delivered("bonds", 2));
  advanceTime(1_001);
  const delivery = { transactionHash: hashFromName("bonds") };
  expect(await findTwice()).toMatchObject({ state: "BONDED", isFinal: false, delivery });
  await rollBack(ARBITRUM_CHAIN_ID, 1);
  await advance(ARBITRUM_CHAIN_ID, 2, false);
  advanceTime(1_001);
  expect(await findTwice()).toMatchObject({ state: "PENDING", delivery: undefined });
  await advance(ARBITRUM_CHAIN_ID, 3, false, delivered("bonds again", 3));
  advanceTime(1_001);
  expect(await findTwice()).toMatchObject({ delivery: { transactionHash: hashFromName("bonds again") } });
});

test("a final delivery is kept for an hour without reading the index", async () => {
  const { findTwice, advance, advanceTime, readCount } = await setup();
  await advance(OPTIMISM_CHAIN_ID, 1, true, SENT);
  await advance(ARBITRUM_CHAIN_ID, 2, true, delivered("bonds", 2));
  const status = await findTwice();
  expect(status).toMatchObject({ state: "BONDED", isFinal: true });
  const reads = readCount();
  advanceTime(60 * 60_000);
  expect(await findTwice()).toBe(status);
  expect(readCount()).toBe(reads);
  advanceTime(1);
  expect(await findTwice()).not.toBe(status);
});

test("a delivery in a final block is not kept while its send is not final", async () => {
  const { findTwice, advance, rollBack, advanceTime } = await setup();
  await advance(OPTIMISM_CHAIN_ID, 1, false, SENT);
  await advance(ARBITRUM_CHAIN_ID, 2, true, delivered("bonds", 2));
  expect(await findTwice()).toMatchObject({ state: "BONDED", isFinal: false });
  await rollBack(OPTIMISM_CHAIN_ID, 0);
  advanceTime(1_001);
  await expect(findTwice()).rejects.toThrow("does not know");
});
