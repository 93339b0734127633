import { setImmediate } from "node:timers/promises";
import { ServiceError } from "../../errors.js";
import type { Chain, Network } from "../../hop/networks.js";
import { catchMaybeAsync, type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { IndexedTransfer } from "../index/store/pages/transfer-page.js";
import {
  LIST_START,
  type ListPosition,
  type PageRequest,
  type TransferPage,
} from "../index/store/pages/transfer-page.js";
import type { TransferIndexReader } from "../index/store/transfer-index.js";
import { createFairSemaphore } from "../spend/fair-semaphore.js";
import { buildTransferStatus, type TransferState, type TransferStatus } from "../status.js";

/** Which transfers to list; undefined: any. */
export interface TransferFilter {
  /** Address of the sender or the recipient, lower-case hex. */
  readonly account: string;
  readonly state: TransferState | undefined;
  /** Symbol of the token. */
  readonly token: string | undefined;
  readonly source: Chain | undefined;
  readonly destination: Chain | undefined;
}

/** A page of a list. */
export interface TransferList {
  /** Newest first; fewer than requested where many transfers do not match the filter. */
  readonly transfers: readonly TransferStatus[];
  /** Where the next page begins; undefined: there are no more transfers. */
  readonly next: ListPosition | undefined;
  /** Since when every chain is indexed, Unix seconds. */
  readonly coveredFromSeconds: number;
}

/** Who asks, and for how long. */
export interface ListContext {
  readonly caller: string;
  readonly signal: AbortSignal;
}

/** Lists the transfers of an account from the index. */
export interface TransferLister {
  /** Returns whether the transfers of a network are indexed. */
  isIndexed(network: Network): boolean;
  /**
   * Returns a page, synchronously if it is small. Every transfer that is indexed all the time is in exactly one page, however
   * many are added meanwhile, and wherever a reorg moves it.
   * @param after undefined for the first page
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the index cannot be read
   */
  list(
    filter: TransferFilter,
    after: ListPosition | undefined,
    pageSize: number,
    context: ListContext,
  ): MaybePromise<TransferList>;
  /**
   * Returns the transfers of one transaction that have an ID, as `list` does: from Ethereum there may be several.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the index cannot be read
   */
  find(transferId: string, transactionHash: string, context: ListContext): MaybePromise<readonly TransferStatus[]>;
}

export interface TransferListerDeps {
  /** Runs a query of the index for a caller; throws, or rejects, if it cannot be read. */
  readonly readIndex: <T>(query: (index: TransferIndexReader) => T, context: ListContext) => MaybePromise<T>;
  /** The network that is indexed. */
  readonly network: Network;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Sends that a read returns: some three milliseconds in which the event loop serves nobody else. */
const ROWS_PER_READ = 100;
/** Sends that a page considers at most: those of pages that a filter leaves nearly empty. */
const MAX_ROWS_PER_PAGE = 1_000;
/** A page ends after as many IDs of other transfers, of which a transaction may have hundreds: some 700 KB. */
const MAX_OTHER_IDS_PER_PAGE = 10_000;
/** Pages of several reads in progress for one caller; twice as many for all. Each takes up to 3 MB. */
const LARGE_PAGES_PER_CALLER = 2;

export function createTransferLister({ readIndex, network, now }: TransferListerDeps): TransferLister {
  const largePages = createFairSemaphore(LARGE_PAGES_PER_CALLER);

  function read<T>(query: (index: TransferIndexReader) => T, context: ListContext): MaybePromise<T> {
    const fail = (cause: unknown): never => {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "the index cannot be read", { cause });
    };
    try {
      return catchMaybeAsync(readIndex(query, context), fail);
    } catch (error) {
      return fail(error);
    }
  }

  function readCoveredFrom(context: ListContext): MaybePromise<number> {
    return read((index) => {
      const starts = Array.from(network.chains.keys(), (slug) => index.getCoverage(slug)?.fromTimestamp);
      return Math.max(...starts.map((start) => start ?? Math.floor(now() / 1_000)));
    }, context);
  }

  return {
    isIndexed: (other) => other === network,
    find: (transferId, transactionHash, context) =>
      mapMaybeAsync(
        read((index) => index.findByTransferId(transferId), context),
        (transfers) => transfers.filter(({ sent }) => sent.transactionHash === transactionHash).map(toStatus),
      ),
    list(filter, after, pageSize, context) {
      const page = new PageBuilder(filter, pageSize, after ?? LIST_START);
      const readMore = (): MaybePromise<void> => {
        const part = read((index) => index.readPage(page.nextRequest()), context);
        return mapMaybeAsync(part, (transfers) => page.add(transfers));
      };
      const finish = (): MaybePromise<TransferList> =>
        mapMaybeAsync(readCoveredFrom(context), (coveredFromSeconds) => ({
          transfers: page.transfers,
          next: page.isAtEnd ? undefined : page.position,
          coveredFromSeconds,
        }));
      if (page.takesOneRead()) return mapMaybeAsync(readMore(), finish);
      // Nothing is read before there is a slot: what waits takes no memory.
      return largePages.acquire(context.caller, context.signal, async () => {
        for (await readMore(); !page.isComplete(); await readMore()) {
          await setImmediate();
          context.signal.throwIfAborted();
        }
        return finish();
      });
    },
  };
}

/** A page while it is read. */
class PageBuilder {
  readonly transfers: TransferStatus[] = [];
  isAtEnd = false;
  private readonly isFiltered: boolean;
  private rowsRead = 0;
  private otherIds = 0;

  constructor(
    private readonly filter: TransferFilter,
    private readonly pageSize: number,
    /** Position of the last send that was considered. */
    public position: ListPosition,
  ) {
    const { account: _, ...conditions } = filter;
    this.isFiltered = Object.values(conditions).some((condition) => condition !== undefined);
  }

  /** Returns whether one read certainly completes the page. */
  takesOneRead(): boolean {
    return !this.isFiltered && this.pageSize < ROWS_PER_READ;
  }

  isComplete(): boolean {
    return (
      this.isAtEnd ||
      this.transfers.length >= this.pageSize ||
      this.rowsRead >= MAX_ROWS_PER_PAGE ||
      this.otherIds >= MAX_OTHER_IDS_PER_PAGE
    );
  }

  /** With a filter, the first read considers few sends: often enough of them match. */
  nextRequest(): PageRequest {
    const { account, state, token, source, destination } = this.filter;
    // One more than the page takes, so that a full page knows whether it is the last.
    const limit = Math.min(ROWS_PER_READ, this.pageSize - this.transfers.length + 1);
    const filteredRows = this.rowsRead === 0 ? ROWS_PER_READ : MAX_ROWS_PER_PAGE - this.rowsRead;
    return {
      account,
      after: this.position,
      rows: this.isFiltered ? filteredRows : limit,
      limit,
      filter: {
        token,
        sourceChainId: source?.chainId,
        destinationChainId: destination?.chainId,
        isDelivered: state && state === "BONDED",
      },
    };
  }

  add({ entries, next, rows }: TransferPage): void {
    this.rowsRead += rows;
    for (const { transfer, position } of entries) {
      if (this.transfers.length >= this.pageSize || this.otherIds >= MAX_OTHER_IDS_PER_PAGE) return;
      this.position = position;
      const status = toStatus(transfer);
      if (!isMatch(status, this.filter)) continue;
      this.transfers.push(status);
      this.otherIds += status.otherTransferIds.length;
    }
    if (next === undefined) this.isAtEnd = true;
    else this.position = next;
  }
}

/** Builds a status of what the index knows: a transfer is pending until its delivery is indexed. */
function toStatus({ sent, delivery, isFinal, otherTransferIds, destinationCoverage }: IndexedTransfer): TransferStatus {
  const observedAtMs = destinationCoverage?.observedAtMs ?? 0;
  return buildTransferStatus(sent, delivery, {
    ...{ source: "index", observedAtMs, isFinal, otherTransferIds, priceUsd: undefined },
  });
}

function isMatch({ sent, state }: TransferStatus, filter: TransferFilter): boolean {
  return (
    (filter.state === undefined || state === filter.state) &&
    (filter.token === undefined || sent.token === filter.token) &&
    (filter.source === undefined || sent.source === filter.source) &&
    (filter.destination === undefined || sent.destination === filter.destination)
  );
}
