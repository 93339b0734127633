import type { Log } from "../../chain/read/chain-reads.js";

/** Where the fourth word of a burn message stands: behind its version (4 bytes), token, recipient and amount. */
const BURNER_OFFSET_BYTES = 4 + 3 * 32;
/** Where the message's bytes begin in the event's data: behind domain, sender, offset and length, of one word each. */
const BODY_OFFSET_BYTES = 4 * 32;

/**
 * Who burnt the USDC that a MessageReceived log brings: the caller of `depositForBurn` on the source, lower case.
 * Undefined for a message of another kind. Source: the layout of CCTP version 1's BurnMessage.
 */
export function decodeBurner({ data }: Log): string | undefined {
  const end = 2 + 2 * (BODY_OFFSET_BYTES + BURNER_OFFSET_BYTES + 32);
  return data.length < end ? undefined : `0x${data.slice(end - 40, end)}`;
}
