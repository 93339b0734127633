import { Agent } from "undici";
import { ServiceError } from "../../errors.js";
import { createHealth } from "../../resilience/circuit-breaker.js";
import { ExchangeError, exchangeJson } from "../../resilience/fetch-json.js";
import type { SourceHealth } from "../../resilience/stale-while-revalidate.js";
import { createBridgeBook } from "../contract-registry.js";
import { networkOf } from "../networks.js";
import { type ExplorerRecord, parseExplorerRecord } from "./explorer-record.js";

/** Hop's explorer API, which knows the transfers of mainnet. */
export interface Explorer {
  /**
   * What it says of a transfer ID, a CCTP nonce or a transaction's hash, in the order of its own ids. Records that cannot
   * be believed or belong to something else are left out.
   * @param asked lower case
   * @throws ServiceError UPSTREAM_UNAVAILABLE when it gives no usable answer, and at once while it is left alone because
   *   it did so several times in a row
   */
  find(asked: string, signal: AbortSignal): Promise<readonly ExplorerRecord[]>;
  health(): SourceHealth;
  /** Breaks off what is under way. */
  close(): Promise<void>;
}

export interface ExplorerOptions {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

const timeoutMs = 3_000;
const maxBytes = 1024 * 1024;
/** Requests at a time; those beyond wait for their turn, within their time. */
const maxAtOnce = 4;
/** How often it is tried while it is left alone. */
const tryMs = 2_000;
/** The API gives no more on a page. */
const maxRecords = 100;

export function createExplorer({ baseUrl, now }: ExplorerOptions): Explorer {
  const dispatcher = new Agent({ connections: maxAtOnce });
  const health = createHealth(now);
  const network = networkOf("mainnet");
  const book = createBridgeBook(network);

  async function read(asked: string, signal: AbortSignal): Promise<readonly unknown[]> {
    const url = `${baseUrl}/v1/transfers?transferId=${encodeURIComponent(asked)}`;
    return listOf(await exchangeJson(url, { dispatcher, timeoutMs, maxBytes, signal }));
  }

  return {
    async find(asked, signal) {
      const isLeftAlone = health.isOpen() || health.isResting();
      if (isLeftAlone && health.restedMs() < tryMs) throw unavailable("is left alone for a while after its failures");
      const attempt = health.begin();
      let list: readonly unknown[];
      try {
        list = await read(asked, signal);
        attempt.succeeded(undefined);
      } catch (error) {
        // Nobody waits any more: that tells nothing of the explorer.
        if (signal.aborted) attempt.wasted();
        else attempt.failed();
        const restMs = error instanceof ExchangeError ? error.retryAfterMs : undefined;
        if (restMs !== undefined) health.rest(restMs);
        throw unavailable("gives no usable answer", error);
      }
      const records = list.flatMap((json) => parseExplorerRecord(network, book, json) ?? []);
      return inOrder(withoutContradictions(records).filter((record) => isAbout(record, asked)));
    },
    health() {
      const state = health.state();
      const answeredAt = health.answeredAt();
      return {
        state: state === "resting" ? "failing" : state,
        ageMs: answeredAt === undefined ? undefined : now() - answeredAt,
      };
    },
    close: () => dispatcher.destroy(),
  };
}

/** The records of an answer, which can say in several ways that it is none. */
function listOf(answer: unknown): readonly unknown[] {
  const { status, data, error } = (answer ?? {}) as { status?: unknown; data?: unknown; error?: unknown };
  const isWell = (status || "ok") === "ok" && !error;
  if (!isWell || !Array.isArray(data) || data.length > maxRecords) throw new Error("the answer has another form");
  return data;
}

function isAbout({ id, transactionHash, bondTransactionHash }: ExplorerRecord, asked: string): boolean {
  return id === asked || transactionHash === asked || bondTransactionHash === asked;
}

/** Leaves out all that something else in the same answer contradicts, and what says the same once more. */
function withoutContradictions(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  const sound = records.filter((record) => !records.some((other) => contradict(record, other)));
  return sound.filter((record, index) => sound.findIndex((other) => isSame(record, other)) === index);
}

function contradict(a: ExplorerRecord, b: ExplorerRecord): boolean {
  if (isSame(a, b)) return textOf(a) !== textOf(b);
  // A transaction is on one chain, from one sender, at one time.
  const isOne = a.source === b.source && a.account === b.account && a.timestamp === b.timestamp;
  return a.transactionHash === b.transactionHash && !isOne;
}

/** Whether both tell of one transfer. Several chains may have the same CCTP nonce. */
function isSame(a: ExplorerRecord, b: ExplorerRecord): boolean {
  return a.id === b.id && (a.kind !== "cctp" || a.source === b.source);
}

function textOf(record: ExplorerRecord): string {
  return JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

/** Numbers by their size, and what is equally long by its characters. */
function inOrder(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  return [...records].sort((a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
}

function unavailable(what: string, cause?: unknown): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `the explorer ${what}`, { cause });
}
