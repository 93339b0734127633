/** How far ahead the deadlines of deliveries are. */
const DEADLINE_SECONDS = 7 * 24 * 3_600;

/**
 * Returns the time, or the start of the next second if the deadlines of this one end in a zero byte. Deadlines are in the
 * calldata of deliveries, where a zero byte costs less gas: a quote of such a second differs by millionths from others of the
 * same chain state. The higher bytes are not zero for hours or years.
 */
export function skipCheapSecond(timeMs: number): number {
  const second = Math.floor(timeMs / 1_000);
  return (second + DEADLINE_SECONDS) % 256 === 0 ? (second + 1) * 1_000 : timeMs;
}
