/** Number of loopback addresses that attackers use. */
const ATTACKER_ADDRESSES = 200;

/**
 * Returns a source address of an attacker, so that the service sees several callers: 127.0.1.x. undefined, which is one
 * caller for all, on systems other than Linux, where only 127.0.0.1 is an address of the machine.
 * @param callers number of callers among whom the connections are divided
 */
export function attackerAddress(connection: number, callers: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  return `127.0.1.${1 + (connection % Math.min(callers, ATTACKER_ADDRESSES))}`;
}

/** Source address of a caller that attacks nothing. */
export const POLITE_ADDRESS = process.platform === "linux" ? "127.0.2.1" : undefined;

/** Returns the source address of a caller of expensive look-ups. */
export function hostileAddress(index: number): string | undefined {
  return process.platform === "linux" ? `127.0.3.${1 + index}` : undefined;
}
