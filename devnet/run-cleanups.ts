/**
 * Runs clean-up functions in order, each even if an earlier one fails.
 * @throws the first failure, after the last function has run
 */
export async function runCleanups(cleanups: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const cleanup of cleanups) {
    try {
      await cleanup();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
