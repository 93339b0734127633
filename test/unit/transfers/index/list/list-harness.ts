import type { CursorRow, EventRows } from "../../../../../src/transfers/index/database/schema.js";
import type { ListPosition } from "../../../../../src/transfers/index/list/page-statement.js";
import { type TransferFilter, TransferLister } from "../../../../../src/transfers/index/list/transfer-lister.js";
import type { TransferIndex } from "../../../../../src/transfers/index/transfer-index.js";
import type { TransferStatus } from "../../../../../src/transfers/status.js";
import { addressFromName, hashFromName, mainnetNetwork } from "../support/hop-events.js";

export const NOW_MS = 1_800_000_000_000;
export const ACCOUNT = addressFromName("account");
export const NO_ROWS: EventRows = { sends: [], deliveries: [], commits: [] };

export const createBlock = (number: number) => ({
  number,
  hash: hashFromName(`block ${number}`),
  timestamp: 1_700_000_000 + number,
});

/** Returns the cursor of a chain that the index has. */
export async function readCursor({ store }: TransferIndex, chainId: number): Promise<CursorRow> {
  const cursor = await store.readCursor(chainId);
  if (cursor === undefined) throw new Error("no cursor");
  return cursor;
}

/** Writes the index of one test, block after block. */
export function createIndexWriter(index: TransferIndex) {
  return {
    /** Starts the index of chains after a final block. */
    async initialize(chainIds: readonly number[], number = 1): Promise<void> {
      for (const chainId of chainIds) await index.store.initializeCursor(chainId, createBlock(number));
    },
    async advance(chainId: number, number: number, rows: Partial<EventRows>): Promise<void> {
      const options = { to: createBlock(number), isFinal: false, observedAtMs: NOW_MS };
      await index.store.advance(await readCursor(index, chainId), { ...NO_ROWS, ...rows }, options);
    },
    /** @param timestamp Unix seconds of the first block. Default: as of any block */
    async prepend(chainId: number, from: number, rows: Partial<EventRows>, timestamp?: number): Promise<void> {
      const start = { ...createBlock(from), ...(timestamp !== undefined && { timestamp }) };
      await index.store.prepend(await readCursor(index, chainId), start, { ...NO_ROWS, ...rows });
    },
    async rollBack(chainId: number, number: number): Promise<void> {
      await index.store.rollBack(await readCursor(index, chainId), createBlock(number));
    },
    async finalize(chainId: number, number: number, rows: Partial<EventRows>): Promise<void> {
      const cursor = await readCursor(index, chainId);
      await index.store.finalize(cursor, createBlock(number), { ...NO_ROWS, ...rows });
    },
  };
}

/** A filter that matches all transfers of the account. */
export const ANY = { account: ACCOUNT, state: undefined, token: undefined, source: undefined, destination: undefined };
export const REQUESTER = { caller: "caller", signal: new AbortController().signal };

/** Lists transfers of an index page by page. */
export function createListHarness(index: TransferIndex) {
  const lister = new TransferLister(index, mainnetNetwork);

  async function readPage(filter: Partial<TransferFilter>, after: ListPosition | undefined, pageSize: number) {
    return lister.list({ ...ANY, ...filter }, after, pageSize, REQUESTER);
  }

  /** Reads all pages; `between` runs before each but the first. */
  async function readAll(
    filter: Partial<TransferFilter> = {},
    pageSize = 50,
    between: () => Promise<void> = async () => {},
  ): Promise<readonly (readonly TransferStatus[])[]> {
    const pages: (readonly TransferStatus[])[] = [];
    let after: ListPosition | undefined;
    do {
      if (after !== undefined) await between();
      const page = await readPage(filter, after, pageSize);
      pages.push(page.transfers);
      after = page.next;
    } while (after !== undefined);
    return pages;
  }

  return { lister, readPage, readAll };
}
