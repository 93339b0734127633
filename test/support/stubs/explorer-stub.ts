import type { ServerResponse } from "node:http";
import { sendJson, startHttpStub } from "./http-stub.js";

/** A record as the explorer API returns it. */
export type ExplorerRecordJson = Readonly<Record<string, unknown>>;

/**
 * How the stub responds. `healthy`: correctly; `down`: 503; `slow`: after a delay; `hang`: never; `foreign`: with all
 * records, whatever the query; `wrong-types`: with objects for numbers; `html`: with a page; `error`: with an error and
 * status 200; `endless`: with more than the body limit.
 */
export type ExplorerMode =
  | ("healthy" | "down" | "slow" | "hang" | "foreign" | "wrong-types" | "html" | "error" | "endless")
  | { readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> };

export interface ExplorerStub {
  readonly url: string;
  /** The `transferId` of each query so far, in order. */
  readonly queries: readonly string[];
  /** Maximum of requests that were open at the same time. */
  readonly maxConcurrent: number;
  mode: ExplorerMode;
  records: readonly ExplorerRecordJson[];
  close(): Promise<void>;
}

const SLOW_MS = 300;
const ENDLESS_BODY_BYTES = 2 * 1024 * 1024;

/** Starts a local explorer API that finds records by ID, hash and bonding hash. */
export async function startExplorerStub(records: readonly ExplorerRecordJson[] = []): Promise<ExplorerStub> {
  const queries: string[] = [];
  let open = 0;
  let maxConcurrent = 0;
  const http = await startHttpStub(({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const id = searchParams.get("transferId") ?? "";
    if (pathname !== "/v1/transfers") {
      sendJson(response, { error: "not found" }, 404);
      return;
    }
    queries.push(id);
    open += 1;
    maxConcurrent = Math.max(maxConcurrent, open);
    response.on("close", () => {
      open -= 1;
    });
    sendResponse(response, stub, id);
  });
  const stub: ExplorerStub = {
    url: http.url,
    queries,
    get maxConcurrent() {
      return maxConcurrent;
    },
    mode: "healthy",
    records,
    close: http.close,
  };
  return stub;
}

function sendResponse(response: ServerResponse, { mode, records }: ExplorerStub, id: string): void {
  const matches = records.filter(({ transferId, transactionHash, bondTransactionHash }) =>
    [transferId, transactionHash, bondTransactionHash].some((id_) => String(id_).toLowerCase() === id),
  );
  const ok = (data: unknown): void => sendJson(response, { status: "ok", data });
  if (typeof mode === "object") {
    for (const [name, value] of Object.entries(mode.headers ?? {})) response.setHeader(name, value);
    sendJson(response, mode.body, mode.status);
    return;
  }
  const toWrongTypes = (record: ExplorerRecordJson): ExplorerRecordJson => {
    return { ...record, amount: { value: record.amount }, timestamp: [record.timestamp] };
  };
  const page = "<!doctype html><title>Explorer</title>";
  const modes: Readonly<Record<typeof mode, () => unknown>> = {
    healthy: () => ok(matches),
    down: () => sendJson(response, { error: "service unavailable" }, 503),
    slow: () => setTimeout(() => ok(matches), SLOW_MS),
    hang: () => {},
    foreign: () => ok(records),
    "wrong-types": () => ok(matches.map(toWrongTypes)),
    html: () => response.writeHead(200, { "content-type": "text/html" }).end(page),
    error: () => sendJson(response, { error: "something broke", data: [] }),
    endless: () => ok([{ filler: "x".repeat(ENDLESS_BODY_BYTES) }]),
  };
  modes[mode]();
}

/** Creates a record of a bonded transfer of DAI from optimism to arbitrum; `overrides` replaces or adds fields. */
export function createExplorerRecord(overrides: ExplorerRecordJson = {}): ExplorerRecordJson {
  return {
    id: `0x${"1a".repeat(32)}`,
    transferId: `0x${"1a".repeat(32)}`,
    transactionHash: `0x${"2b".repeat(32)}`,
    sourceChainId: 10,
    sourceChainSlug: "optimism",
    destinationChainId: 42161,
    destinationChainSlug: "arbitrum",
    accountAddress: `0x${"c1".repeat(20)}`,
    amount: "2500000000000000000",
    amountFormatted: 2.5,
    amountUsd: 2.505,
    amountOutMin: "2490000000000000000",
    deadline: 1662159408,
    recipientAddress: `0x${"d2".repeat(20)}`,
    bonderFee: "250000000000000000",
    bonderFeeFormatted: 0.25,
    bonderFeeUsd: 0.2505,
    bonded: true,
    bondTimestamp: 1661554800,
    bondTransactionHash: `0x${"3c".repeat(32)}`,
    bonderAddress: `0x${"e3".repeat(20)}`,
    token: "DAI",
    tokenPriceUsd: 1.002,
    timestamp: 1661554612,
    unbondable: false,
    receivedHTokens: false,
    ...overrides,
  };
}
