import { type ChainClient, getCacheKey, type RpcCall, type RpcCallResult } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";

/** Calls of one batch. Receipts are large, and endpoints limit the size of their responses. */
const MAX_BATCH_CALLS = 20;

interface QueuedCall {
  readonly call: RpcCall;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * Decorates the clients of chains: single calls to one chain that are made in the same turn of the event loop go out in one
 * batch.
 * @param signal ends the batches, in place of the signals of their calls
 */
export function joinCalls(chains: NetworkChainClients, signal: AbortSignal): NetworkChainClients {
  const clients = new Map<string, ChainClient>();
  return {
    hasCustomEndpoint: (slug) => chains.hasCustomEndpoint(slug),
    getClient(slug) {
      const client = clients.get(slug) ?? joinCallsOf(chains.getClient(slug), signal);
      clients.set(slug, client);
      return client;
    },
  };
}

function joinCallsOf(client: ChainClient, signal: AbortSignal): ChainClient {
  let queue: QueuedCall[] = [];

  function flush(): void {
    const calls = queue;
    queue = [];
    for (let start = 0; start < calls.length; start += MAX_BATCH_CALLS) {
      void sendTogether(calls.slice(start, start + MAX_BATCH_CALLS));
    }
  }

  async function sendTogether(queued: readonly QueuedCall[]): Promise<void> {
    try {
      const outcomes = await client.sendBatch(
        queued.map(({ call }) => call),
        signal,
      );
      for (const [index, { resolve, reject }] of queued.entries()) settle(outcomes[index], resolve, reject);
    } catch (error) {
      for (const { reject } of queued) reject(error);
    }
  }

  return {
    slug: client.slug,
    cacheKey: getCacheKey(client),
    send(method, params, _signal, validate, onRequest) {
      // After the callbacks of all promises that are settled now, so that their calls join.
      if (queue.length === 0) process.nextTick(flush);
      return new Promise((resolve, reject) => {
        queue.push({ call: { method, params, validate, onRequest }, resolve, reject });
      });
    },
    sendBatch: (calls, outer) => client.sendBatch(calls, outer),
    getLogs: (filter, range, newestFirst, outer, onRequest) =>
      client.getLogs(filter, range, newestFirst, outer, onRequest),
  };
}

function settle(
  outcome: RpcCallResult | undefined,
  resolve: QueuedCall["resolve"],
  reject: QueuedCall["reject"],
): void {
  if (outcome === undefined) reject(new Error("the call has no outcome"));
  else if ("revert" in outcome) reject(outcome.revert);
  else resolve(outcome.result);
}
