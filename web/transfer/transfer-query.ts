import type { ViewParameters } from "../shared/location-hash.js";

/** Parameters with which to ask for a transfer. */
export type TransferQuery = Readonly<Record<string, string>>;

/**
 * How to ask for what an address names: under `id` it is an id. Under `of` it may be either: a hash that no transaction
 * has may still be an id, and plain digits are the id of a CCTP transfer. To be asked in order until one is known.
 */
export function toTransferQueries(values: ViewParameters): readonly TransferQuery[] {
  const network = values.get("network");
  const rest = network === undefined || network === "mainnet" ? {} : { network };
  const id = values.get("id");
  if (id !== undefined) return [{ transferId: id, ...rest }];
  const text = values.get("of") ?? "";
  const asId = { transferId: text, ...rest };
  if (/^[0-9]+$/.test(text)) return [asId];
  const asHash = { transferHash: text, ...rest };
  return /^0x[0-9a-f]{64}$/i.test(text) ? [asHash, asId] : [asHash];
}
