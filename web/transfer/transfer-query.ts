import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";

/** Query parameters that name a transfer. */
export type TransferQuery = Readonly<Record<string, string>>;

/**
 * Returns the queries of which one may find a transfer, the likelier first. The parameter `id` is a transfer id. The parameter `of`
 * is a transaction hash or a transfer id, since both look alike; plain digits are the id of a CCTP transfer.
 */
export function toTransferQueries(parameters: ViewParameters): readonly TransferQuery[] {
  const network = toNetworkParameter(getNetwork(parameters));
  const common = network === "" ? {} : { network };
  const id = parameters.get("id");
  if (id !== undefined) return [{ transferId: id, ...common }];
  const text = parameters.get("of") ?? "";
  const byId = { transferId: text, ...common };
  if (/^[0-9]+$/.test(text)) return [byId];
  const byHash = { transferHash: text, ...common };
  return /^0x[0-9a-f]{64}$/i.test(text) ? [byHash, byId] : [byHash];
}

/** Returns the query that a transfer is the answer to: the one by its id, or else the first. */
export function selectMatchingQuery(
  queries: readonly TransferQuery[],
  { transferId: id }: { readonly transferId: string },
): TransferQuery {
  const byId = queries.find(({ transferId }) => transferId?.toLowerCase() === id);
  return byId ?? queries[0] ?? {};
}
