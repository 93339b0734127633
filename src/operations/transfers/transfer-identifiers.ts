import { isBytes32 } from "../../chain/hex.js";
import { ServiceError } from "../../errors.js";

// What callers name transfers by. Each function returns lower case, or throws a ServiceError with the name of the field.

/** Parses the hash of a transaction. @throws ServiceError INVALID_PARAMETER. */
export function parseTransactionHash(field: string, value: string): string {
  if (isBytes32(value)) return value.toLowerCase();
  throw new ServiceError("INVALID_PARAMETER", `${field} is not 32 bytes as 0x-prefixed hex`, { field });
}

/** Parses a transfer ID as in TransferQuery. @throws ServiceError INVALID_PARAMETER. */
export function parseTransferId(field: string, value: string): string {
  // A CCTP nonce is an unsigned 64-bit integer.
  if (/^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n) return value;
  return parseTransactionHash(field, value);
}
