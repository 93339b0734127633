import type { Log } from "../../chain/read/chain-reads.js";

/** Offset of the fourth word of a BurnMessage, after version (4 bytes), token, recipient and amount. */
const BURNER_OFFSET_BYTES = 4 + 3 * 32;
/** Offset of the message in the event's data, after domain, sender, offset and length (one word each). */
const BODY_OFFSET_BYTES = 4 * 32;

/**
 * Decodes the burner from a MessageReceived log: the address, in lower case, that called `depositForBurn` on the source.
 * Returns undefined for a message that is too short. Layout: BurnMessage of CCTP V1.
 */
export function decodeBurnMessageSender({ data }: Log): string | undefined {
  const end = 2 + 2 * (BODY_OFFSET_BYTES + BURNER_OFFSET_BYTES + 32);
  return data.length < end ? undefined : `0x${data.slice(end - 40, end)}`;
}
