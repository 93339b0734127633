import { type ChainClient, type RpcCall, resultOf } from "../../../chain/chain-client.js";
import { headerIn, malformed, senderIn } from "../../../chain/json-rpc/parse-results.js";
import { createLimit } from "../../../resilience/fetch-json.js";
import { bytesOf } from "../store/hex.js";
import type { EventRows } from "../store/index-store.js";
import type { IndexEvent } from "./bridge-event-parser.js";

/** Calls of one batch. */
const callsAtOnce = 50;
/** Batches under way. */
const maxBatches = 4;

/**
 * Adds what events do not say themselves: who sent the transaction and when, where that matters.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not say so
 */
export async function completeEvents(
  client: ChainClient,
  events: readonly IndexEvent[],
  signal: AbortSignal,
): Promise<EventRows> {
  const transactions = new Set(events.filter(needsSender).map(({ transactionHash }) => transactionHash));
  const blocks = new Set(events.filter(needsTime).map(({ blockHash }) => blockHash));
  const answers = await callAll(
    client,
    [
      ...[...transactions].map((hash) => ({ method: "eth_getTransactionByHash", params: [hash] })),
      ...[...blocks].map((hash) => ({ method: "eth_getBlockByHash", params: [hash, false] })),
    ],
    signal,
  );
  const senders = new Map([...transactions].map((hash, index) => [hash, bytesOf(senderIn(client, answers[index]))]));
  const times = new Map(
    [...blocks].map((hash, index) => {
      const header = headerIn(client, answers[transactions.size + index]);
      // A block that is not there was undone meanwhile, or its node is behind the one that gave the logs.
      if (header?.hash !== hash) throw malformed(client);
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

function needsSender(event: IndexEvent): boolean {
  return "send" in event || event.isBond;
}

function needsTime(event: IndexEvent): boolean {
  return "send" in event || event.kind === "l1";
}

/** The results of any number of calls, in their order. The first failure ends all of them. */
async function callAll(client: ChainClient, calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown[]> {
  const results: unknown[] = [];
  const starts = Array.from({ length: Math.ceil(calls.length / callsAtOnce) }, (_, batch) => batch * callsAtOnce);
  const queue = starts.values();
  const limit = createLimit(signal);
  const work = async (): Promise<void> => {
    for (const start of queue) {
      if (limit.signal.aborted) return;
      const outcomes = await client.batch(calls.slice(start, start + callsAtOnce), limit.signal);
      for (const [index, outcome] of outcomes.entries()) results[start + index] = resultOf(outcome);
    }
  };
  try {
    await Promise.all(Array.from({ length: maxBatches }, work));
  } finally {
    limit.end();
  }
  return results;
}
