import { createAbortScope } from "./fetch-json.js";

/**
 * Asks several at once and takes the first that finds something; the others' signal fires then. That none finds anything
 * is sure only when all have answered.
 * @throws the first failure, where none has found anything and not all have answered
 */
export async function raceFirstDefined<Asked, T>(
  asked: readonly Asked[],
  look: (asked: Asked, signal: AbortSignal) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const limit = createAbortScope(signal);
  const failures: unknown[] = [];
  try {
    return await new Promise((resolve, reject) => {
      let open = asked.length;
      const settle = (): void => {
        open -= 1;
        if (open > 0) return;
        if (failures.length > 0) reject(failures[0]);
        else resolve(undefined);
      };
      if (open === 0) resolve(undefined);
      for (const each of asked) {
        look(each, limit.signal).then(
          (found) => {
            if (found !== undefined) resolve(found);
            settle();
          },
          (error: unknown) => {
            failures.push(error);
            settle();
          },
        );
      }
    });
  } finally {
    limit.cancel();
  }
}
