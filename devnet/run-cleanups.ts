/**
 * Ends one after another in the given order, each also when one before it fails.
 * @throws whatever the first failure was, after the last.
 */
export async function runCleanups(ends: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const end of ends) {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
