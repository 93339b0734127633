import { type ChainClient, findRpcResult, type RpcCall } from "../../../chain/chain-client.js";
import { hexToBytes } from "../../../chain/hex.js";
import { invalidResponse, parseBlockHeader, parseSender } from "../../../chain/json-rpc/parse-results.js";
import { createAbortScope } from "../../../resilience/abort-scope.js";
import type { CommitRow, DeliveryRow, EventRows, SendRow } from "../database/schema.js";
import type { BridgeEvent } from "./bridge-event-parser.js";

const CALLS_PER_BATCH = 50;
const MAX_CONCURRENT_BATCHES = 4;

/**
 * Adds the time of the block to all events, and the sender of the transaction to those that need it.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not return them
 */
export async function enrichEvents(
  client: ChainClient,
  events: readonly BridgeEvent[],
  signal: AbortSignal,
): Promise<EventRows> {
  const transactionHashes = new Set(events.filter(needsSender).map(({ transactionHash }) => transactionHash));
  const blockHashes = new Set(events.map(({ blockHash }) => blockHash));
  const results = await callInBatches(
    client,
    [
      ...[...transactionHashes].map((hash) => ({ method: "eth_getTransactionByHash", params: [hash] })),
      ...[...blockHashes].map((hash) => ({ method: "eth_getBlockByHash", params: [hash, false] })),
    ],
    signal,
  );
  const senders = new Map(
    [...transactionHashes].map((hash, index) => [hash, hexToBytes(parseSender(client, results[index]))]),
  );
  const timestamps = new Map(
    [...blockHashes].map((hash, index) => {
      const header = parseBlockHeader(client, results[transactionHashes.size + index]);
      // A missing block was reorged meanwhile, or this node lags behind the one that returned the logs.
      if (header?.hash !== hash) throw invalidResponse(client);
      return [hash, header.timestamp];
    }),
  );
  const rows = { sends: [] as SendRow[], deliveries: [] as DeliveryRow[], commits: [] as CommitRow[] };
  for (const event of events) {
    if ("commit" in event) {
      rows.commits.push(event.commit);
      continue;
    }
    const sender = senders.get(event.transactionHash);
    const timestamp = timestamps.get(event.blockHash);
    if ("delivery" in event) {
      const bonder = (event.isBond && sender) || null;
      rows.deliveries.push({ ...event.delivery, bonder, timestamp: timestamp ?? null });
    } else if (sender !== undefined && timestamp !== undefined) {
      rows.sends.push({ ...event.send, account: sender, timestamp });
    }
  }
  return rows;
}

function needsSender(event: BridgeEvent): boolean {
  return "send" in event || ("delivery" in event && event.isBond);
}

/** Returns the results of any number of calls, in their order; the first failure aborts the others. */
async function callInBatches(client: ChainClient, calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown[]> {
  const results: unknown[] = [];
  const starts = Array.from(
    { length: Math.ceil(calls.length / CALLS_PER_BATCH) },
    (_, batch) => batch * CALLS_PER_BATCH,
  );
  const queue = starts.values();
  const scope = createAbortScope(signal);
  const runBatches = async (): Promise<void> => {
    for (const start of queue) {
      if (scope.signal.aborted) return;
      const outcomes = await client.sendBatch(calls.slice(start, start + CALLS_PER_BATCH), scope.signal);
      for (const [index, outcome] of outcomes.entries()) results[start + index] = findRpcResult(outcome);
    }
  };
  try {
    await Promise.all(Array.from({ length: MAX_CONCURRENT_BATCHES }, runBatches));
  } finally {
    scope.cancel();
  }
  return results;
}
