import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";

/** Query parameters of a status request. */
export type TransferQuery = Readonly<Record<string, string>>;

/**
 * Returns the queries to try in order until one finds a transfer. The parameter `id` is a transfer id. The parameter `of`
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
