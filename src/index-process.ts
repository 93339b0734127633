import { setTimeout as wait } from "node:timers/promises";

// What the service and the command that fills the index share in running it.

/** Resolves when the time is over or the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {});
}

/** What went wrong, in a line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
