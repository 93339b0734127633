import type { ChainClient, RpcCall } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { getHeadTracker } from "../../chain/heads/head-tracker.js";
import type { LookupBudget, RequestPurpose } from "./lookup-budget.js";

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
  budget: Pick<LookupBudget, "spend">,
  takeTurn: SearchTurn = (_chain, _signal, search) => search(),
): NetworkChainClients {
  return {
    hasCustomEndpoint: (slug) => chains.hasCustomEndpoint(slug),
    getClient: (slug) => meterClient(chains.getClient(slug), budget, takeTurn),
  };
}

function meterClient(client: ChainClient, budget: Pick<LookupBudget, "spend">, takeTurn: SearchTurn): ChainClient {
  const { slug } = client;
  return {
    slug,
    heads: getHeadTracker(client),
    send: (method, params, signal, options) =>
      client.send(method, params, signal, meterCall(slug, { ...options, method, params }, budget)),
    sendBatch: (calls, signal) =>
      client.sendBatch(
        calls.map((call) => meterCall(slug, call, budget)),
        signal,
      ),
    getLogs(search, signal) {
      const onRequest = (): void => {
        search.onRequest?.();
        budget.spend(slug, "logs");
      };
      return takeTurn(slug, signal, () => client.getLogs({ ...search, onRequest }, signal));
    },
  };
}

function meterCall(slug: string, call: RpcCall, budget: Pick<LookupBudget, "spend">): RpcCall {
  return {
    ...call,
    onRequest() {
      call.onRequest?.();
      budget.spend(slug, PURPOSES.get(call.method) ?? "other");
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
  const spend = (chain: string): void => {
    if (chains.hasCustomEndpoint(chain)) return;
    if (requests >= maxRequests) throw onExceeded(chain);
    requests += 1;
  };
  return meterChains(chains, { spend });
}
