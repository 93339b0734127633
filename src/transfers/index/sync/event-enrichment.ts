import { type ChainClient, getResult, type RpcCall } from "../../../chain/chain-client.js";
import { invalidResponse, parseBlockHeader, parseSender } from "../../../chain/json-rpc/parse-results.js";
import { createAbortScope } from "../../../resilience/abort-scope.js";
import { hexToBytes } from "../store/hex.js";
import type { EventRows } from "../store/index-store.js";
import type { BridgeEvent } from "./bridge-event-parser.js";

/** Calls of one batch. */
const CALLS_PER_BATCH = 50;
/** Batches under way. */
const MAX_CONCURRENT_BATCHES = 4;

/**
 * Adds what events do not say themselves: who sent the transaction and when, where that matters.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not say so
 */
export async function enrichEvents(
  client: ChainClient,
  events: readonly BridgeEvent[],
  signal: AbortSignal,
): Promise<EventRows> {
  const transactions = new Set(events.filter(needsSender).map(({ transactionHash }) => transactionHash));
  const blocks = new Set(events.filter(needsTimestamp).map(({ blockHash }) => blockHash));
  const answers = await callInBatches(
    client,
    [
      ...[...transactions].map((hash) => ({ method: "eth_getTransactionByHash", params: [hash] })),
      ...[...blocks].map((hash) => ({ method: "eth_getBlockByHash", params: [hash, false] })),
    ],
    signal,
  );
  const senders = new Map(
    [...transactions].map((hash, index) => [hash, hexToBytes(parseSender(client, answers[index]))]),
  );
  const times = new Map(
    [...blocks].map((hash, index) => {
      const header = parseBlockHeader(client, answers[transactions.size + index]);
      // A block that is not there was undone meanwhile, or its node is behind the one that gave the logs.
      if (header?.hash !== hash) throw invalidResponse(client);
      return [hash, header.timestamp];
    }),
  );
  const rows = { sends: [] as EventRows["sends"][number][], deliveries: [] as EventRows["deliveries"][number][] };
  for (const event of events) {
    const sender = senders.get(event.transactionHash);
    const timestamp = times.get(event.blockHash);
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
  return "send" in event || event.isBond;
}

function needsTimestamp(event: BridgeEvent): boolean {
  return "send" in event || event.kind === "l1";
}

/** The results of any number of calls, in their order. The first failure ends all of them. */
async function callInBatches(client: ChainClient, calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown[]> {
  const results: unknown[] = [];
  const starts = Array.from(
    { length: Math.ceil(calls.length / CALLS_PER_BATCH) },
    (_, batch) => batch * CALLS_PER_BATCH,
  );
  const queue = starts.values();
  const limit = createAbortScope(signal);
  const work = async (): Promise<void> => {
    for (const start of queue) {
      if (limit.signal.aborted) return;
      const outcomes = await client.sendBatch(calls.slice(start, start + CALLS_PER_BATCH), limit.signal);
      for (const [index, outcome] of outcomes.entries()) results[start + index] = getResult(outcome);
    }
  };
  try {
    await Promise.all(Array.from({ length: MAX_CONCURRENT_BATCHES }, work));
  } finally {
    limit.cancel();
  }
  return results;
}
