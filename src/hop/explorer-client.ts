import { ServiceError } from "../errors.js";
import { CircuitBreaker } from "../resilience/http-client/circuit-breaker.js";
import { fetchJson } from "../resilience/http-client/fetch-json.js";
import { Agent } from "../resilience/http-client/undici.js";
import { UpstreamError } from "../resilience/http-client/upstream-error.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import { ContractRegistry } from "./contract-registry.js";
import { type ExplorerRecord, parseExplorerRecord } from "./explorer-record.js";
import { getNetwork } from "./networks.js";

const TIMEOUT_MS = 8_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Maximum number of connections; more requests wait, within their timeout. */
const MAX_CONCURRENT_REQUESTS = 4;
/** Interval between attempts during a cooldown. */
const PROBE_INTERVAL_MS = 2_000;
/** Page size of the API. */
const MAX_RECORDS = 100;

/** Client of Hop's explorer API, which indexes the transfers of mainnet. */
export class ExplorerClient {
  readonly #baseUrl: string;
  readonly #now: () => number;
  readonly #dispatcher = new Agent({ connections: MAX_CONCURRENT_REQUESTS });
  readonly #breaker: CircuitBreaker;
  readonly #network = getNetwork("mainnet");
  readonly #registry = new ContractRegistry(this.#network);

  /**
   * @param baseUrl without a trailing slash
   * @param now milliseconds on a monotonic clock
   */
  constructor(baseUrl: string, now: () => number) {
    this.#baseUrl = baseUrl;
    this.#now = now;
    this.#breaker = new CircuitBreaker(now);
  }

  /**
   * Returns the records for a transfer ID, a CCTP nonce or a transaction hash, sorted by id. Drops records that are invalid,
   * contradictory or do not match the query.
   * @param query lower case
   * @throws ServiceError UPSTREAM_UNAVAILABLE without a usable response; immediately during the cooldown after several
   *   failures in a row
   */
  async findTransfers(query: string, signal: AbortSignal): Promise<readonly ExplorerRecord[]> {
    const breaker = this.#breaker;
    const isCoolingDown = breaker.isOpen() || breaker.isCoolingDown();
    if (isCoolingDown && breaker.cooldownElapsedMs() < PROBE_INTERVAL_MS)
      throw createUnavailableError("is in cooldown after repeated failures");
    const attempt = breaker.beginAttempt();
    let rawRecords: readonly unknown[];
    try {
      rawRecords = await this.#fetchRecords(query, signal);
      attempt.recordSuccess(undefined);
    } catch (error) {
      // The caller aborted, which says nothing about the explorer.
      if (signal.aborted) attempt.ignore();
      else attempt.recordFailure();
      const retryAfterMs = error instanceof UpstreamError ? error.retryAfterMs : undefined;
      if (retryAfterMs !== undefined) breaker.startCooldown(retryAfterMs);
      throw createUnavailableError("returned no usable response", error);
    }
    const records = rawRecords.flatMap((json) => parseExplorerRecord(this.#network, this.#registry, json) ?? []);
    return sortById(dropContradictions(records).filter((record) => matchesQuery(record, query)));
  }

  health(): SourceHealth {
    const state = this.#breaker.state();
    const lastSuccessAt = this.#breaker.lastSuccessAt();
    return {
      state: state === "cooldown" ? "failing" : state,
      ageMs: lastSuccessAt === undefined ? undefined : this.#now() - lastSuccessAt,
    };
  }

  /** Aborts all requests. */
  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  async #fetchRecords(query: string, signal: AbortSignal): Promise<readonly unknown[]> {
    const url = `${this.#baseUrl}/v1/transfers?transferId=${encodeURIComponent(query)}`;
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_RESPONSE_BYTES };
    return parseRecordList(await fetchJson(url, { dispatcher: this.#dispatcher, ...limits, signal }));
  }
}

/** Returns the raw records of a response. @throws Error for a response that reports an error in any of several ways. */
function parseRecordList(response: unknown): readonly unknown[] {
  const { status, data, error } = (response ?? {}) as { status?: unknown; data?: unknown; error?: unknown };
  const isOk = (status || "ok") === "ok" && !error;
  if (!isOk || !Array.isArray(data) || data.length > MAX_RECORDS)
    throw new Error("the response has an unexpected format");
  return data;
}

function matchesQuery({ id, transactionHash, bondTransactionHash }: ExplorerRecord, query: string): boolean {
  return id === query || transactionHash === query || bondTransactionHash === query;
}

/** Drops records that contradict another one of the same response, and duplicates. */
function dropContradictions(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  const consistent = records.filter((record) => !records.some((other) => areContradictory(record, other)));
  return consistent.filter((record, index) => consistent.findIndex((other) => isSameTransfer(record, other)) === index);
}

function areContradictory(a: ExplorerRecord, b: ExplorerRecord): boolean {
  if (isSameTransfer(a, b)) return serializeRecord(a) !== serializeRecord(b);
  // A transaction has one chain, one sender and one time.
  const isSameTransaction = a.source === b.source && a.account === b.account && a.timestamp === b.timestamp;
  return a.transactionHash === b.transactionHash && !isSameTransaction;
}

/** Returns whether both records are of one transfer. CCTP nonces are only unique per source chain. */
function isSameTransfer(a: ExplorerRecord, b: ExplorerRecord): boolean {
  return a.id === b.id && (a.kind !== "cctp" || a.source === b.source);
}

function serializeRecord(record: ExplorerRecord): string {
  return JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

/** Sorts by length, then by characters: decimal nonces sort numerically. */
function sortById(records: readonly ExplorerRecord[]): readonly ExplorerRecord[] {
  return [...records].sort((a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
}

function createUnavailableError(problem: string, cause?: unknown): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `the explorer ${problem}`, { cause });
}
