import { type ChainClient, getCacheKey, type RpcCall } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import type { RequestPurpose } from "./lookup-budget.js";

/** Called before each request; prevents it by throwing. */
export type SpendRequest = (chain: string, purpose: RequestPurpose) => void;

/** Runs a log search when it is its turn. */
export type SearchTurn = <T>(chain: string, signal: AbortSignal, search: () => Promise<T>) => Promise<T>;

const PURPOSES: ReadonlyMap<string, RequestPurpose> = new Map<string, RequestPurpose>([
  ["eth_call", "call"],
  ["eth_getBlockByHash", "block"],
  ["eth_getBlockByNumber", "block"],
  ["eth_getTransactionByHash", "transaction"],
  ["eth_getTransactionReceipt", "receipt"],
]);

/** Decorates the clients of chains: every HTTP request has to be spent first, and log searches take turns. */
export function meterChains(
  chains: NetworkChainClients,
  spend: SpendRequest,
  takeTurn: SearchTurn = (_chain, _signal, search) => search(),
): NetworkChainClients {
  return {
    hasCustomEndpoint: (slug) => chains.hasCustomEndpoint(slug),
    getClient: (slug) => meterClient(chains.getClient(slug), spend, takeTurn),
  };
}

function meterClient(client: ChainClient, spend: SpendRequest, takeTurn: SearchTurn): ChainClient {
  const { slug } = client;
  return {
    slug,
    cacheKey: getCacheKey(client),
    send(method, params, signal, validate, onRequest) {
      const call = meterCall(slug, { method, params, onRequest }, spend);
      return client.send(method, params, signal, validate, call.onRequest);
    },
    sendBatch: (calls, signal) =>
      client.sendBatch(
        calls.map((call) => meterCall(slug, call, spend)),
        signal,
      ),
    getLogs: (filter, range, newestFirst, signal, onRequest) =>
      takeTurn(slug, signal, () =>
        client.getLogs(filter, range, newestFirst, signal, () => {
          onRequest?.();
          spend(slug, "logs");
        }),
      ),
  };
}

function meterCall(slug: string, call: RpcCall, spend: SpendRequest): RpcCall {
  return {
    ...call,
    onRequest() {
      call.onRequest?.();
      spend(slug, PURPOSES.get(call.method) ?? "other");
    },
  };
}

/**
 * Limits how many requests may be sent to the operator's endpoints from here on, however many the lookup still has.
 * @param onExceeded creates the error with which a request beyond the limit fails
 */
export function limitOperatorRequests(
  chains: NetworkChainClients,
  maxRequests: number,
  onExceeded: (chain: string) => Error,
): NetworkChainClients {
  let requests = 0;
  return meterChains(chains, (chain) => {
    if (chains.hasCustomEndpoint(chain)) return;
    if (requests >= maxRequests) throw onExceeded(chain);
    requests += 1;
  });
}
