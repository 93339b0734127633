import type { TransferStatusResponse } from "../shared/api/api-types.js";
import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";

/** Which transfers the view lists. Filters are empty for any. */
export interface AccountQuery {
  readonly account: string;
  readonly state: string;
  readonly token: string;
  readonly fromChain: string;
  readonly toChain: string;
  /** Empty for the default network. */
  readonly network: string;
}

export function toAccountQuery(parameters: ViewParameters): AccountQuery {
  const get = (name: string): string => parameters.get(name) ?? "";
  return {
    account: get("of").trim(),
    state: get("state"),
    token: get("token"),
    fromChain: get("from"),
    toChain: get("to"),
    network: toNetworkParameter(getNetwork(parameters)),
  };
}

/** Returns the view's parameters in the URL hash. {@link toAccountQuery} reverses it. */
export function toViewParameters({ account, state, token, fromChain, toChain, network }: AccountQuery): ViewParameters {
  return new Map(Object.entries({ of: account, state, token, from: fromChain, to: toChain, network }));
}

/** Returns whether a transfer of the account passes the filters. */
export function matchesFilters(
  { state, token, fromChain, toChain }: AccountQuery,
  transfer: TransferStatusResponse,
): boolean {
  const isAccepted = (filter: string, value: string): boolean => filter === "" || filter === value;
  return (
    isAccepted(state, transfer.state) &&
    isAccepted(token, transfer.token) &&
    isAccepted(fromChain, transfer.sourceChainSlug) &&
    isAccepted(toChain, transfer.destinationChainSlug)
  );
}

export function hasFilters({ state, token, fromChain, toChain }: AccountQuery): boolean {
  return state + token + fromChain + toChain !== "";
}
