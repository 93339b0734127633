import { Agent } from "undici";
import { ServiceError } from "../../errors.js";
import { createCircuitBreaker } from "../../resilience/circuit-breaker.js";
import { fetchJson } from "../../resilience/fetch-json.js";
import type { SourceHealth } from "../../resilience/stale-while-revalidate.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { createContractRegistry } from "../contract-registry.js";
import { getNetwork } from "../networks.js";
import { type ExplorerRecord, parseExplorerRecord } from "./explorer-record.js";

/** Hop's explorer API, which knows the transfers of mainnet. */
export interface ExplorerClient {
  /**
   * What it says of a transfer ID, a CCTP nonce or a transaction's hash, in the order of its own ids. Records that cannot
   * be believed or belong to something else are left out.
   * @param asked lower case
   * @throws ServiceError UPSTREAM_UNAVAILABLE when it gives no usable answer, and at once while it is left alone because
   *   it did so several times in a row
   */
  findTransfers(asked: string, signal: AbortSignal): Promise<readonly ExplorerRecord[]>;
  health(): SourceHealth;
  /** Breaks off what is under way. */
  close(): Promise<void>;
}

export interface ExplorerClientOptions {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

const TIMEOUT_MS = 3_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Requests at a time; those beyond wait for their turn, within their time. */
const MAX_CONCURRENT_REQUESTS = 4;
/** How often it is tried while it is left alone. */
const PROBE_INTERVAL_MS = 2_000;
/** The API gives no more on a page. */
const MAX_RECORDS = 100;

export function createExplorerClient({ baseUrl, now }: ExplorerClientOptions): ExplorerClient {
  const dispatcher = new Agent({ connections: MAX_CONCURRENT_REQUESTS });
  const health = createCircuitBreaker(now);
  const network = getNetwork("mainnet");
  const book = createContractRegistry(network);

  async function read(asked: string, signal: AbortSignal): Promise<readonly unknown[]> {
    const url = `${baseUrl}/v1/transfers?transferId=${encodeURIComponent(asked)}`;
    return parseRecordList(
      await fetchJson(url, { dispatcher, timeoutMs: TIMEOUT_MS, maxBytes: MAX_RESPONSE_BYTES, signal }),
    );
  }

  return {
    async findTransfers(asked, signal) {
      const isLeftAlone = health.isOpen() || health.isCoolingDown();
      if (isLeftAlone && health.cooldownElapsedMs() < PROBE_INTERVAL_MS)
        throw createUnavailableError("is left alone for a while after its failures");
      const attempt = health.beginAttempt();
      let list: readonly unknown[];
      try {
        list = await read(asked, signal);
        attempt.recordSuccess(undefined);
      } catch (error) {
        // Nobody waits any more: that tells nothing of the explorer.
        if (signal.aborted) attempt.ignore();
        else attempt.recordFailure();
        const restMs = error instanceof UpstreamError ? error.retryAfterMs : undefined;
        if (restMs !== undefined) health.startCooldown(restMs);
        throw createUnavailableError("gives no usable answer", error);
      }
      const records = list.flatMap((json) => parseExplorerRecord(network, book, json) ?? []);
      return sortById(dropContradictions(records).filter((record) => matchesQuery(record, asked)));
    },
    health() {
      const state = health.state();
      const answeredAt = health.lastSuccessAt();
      return {
        state: state === "cooldown" ? "failing" : state,
        ageMs: answeredAt === undefined ? undefined : now() - answeredAt,
      };
    },
    close: () => dispatcher.destroy(),
  };
}

/** The records of an answer, which can say in several ways that it is none. */
function parseRecordList(answer: unknown): readonly unknown[] {
  const { status, data, error } = (answer ?? {}) as { status?: unknown; data?: unknown; error?: unknown };
  const isWell = (status || "ok") === "ok" && !error;
  if (!isWell || !Array.isArray(data) || data.length > MAX_RECORDS) throw new Error("the answer has another form");
  return data;
}

function matchesQuery({ id, transactionHash, bondTransactionHash }: ExplorerRecord, asked: string): boolean {
  return id === asked || transactionHash === asked || bondTransactionHash === asked;
}

/** Leaves out all that something else in the same answer contradicts, and what says the same once more. */
function dropContradictions(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  const sound = records.filter((record) => !records.some((other) => areContradictory(record, other)));
  return sound.filter((record, index) => sound.findIndex((other) => isSameTransfer(record, other)) === index);
}

function areContradictory(a: ExplorerRecord, b: ExplorerRecord): boolean {
  if (isSameTransfer(a, b)) return serializeRecord(a) !== serializeRecord(b);
  // A transaction is on one chain, from one sender, at one time.
  const isOne = a.source === b.source && a.account === b.account && a.timestamp === b.timestamp;
  return a.transactionHash === b.transactionHash && !isOne;
}

/** Whether both tell of one transfer. Several chains may have the same CCTP nonce. */
function isSameTransfer(a: ExplorerRecord, b: ExplorerRecord): boolean {
  return a.id === b.id && (a.kind !== "cctp" || a.source === b.source);
}

function serializeRecord(record: ExplorerRecord): string {
  return JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

/** Numbers by their size, and what is equally long by its characters. */
function sortById(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  return [...records].sort((a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
}

function createUnavailableError(what: string, cause?: unknown): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `the explorer ${what}`, { cause });
}
