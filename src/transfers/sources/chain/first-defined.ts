import { createAbortScope } from "../../../resilience/abort-scope.js";

/**
 * Looks in all sources at the same time, returns the first defined result and aborts the other lookups. Returns
 * undefined only when every source has answered with undefined.
 * @throws the first failure, when no source has a result and at least one failed
 */
export async function raceFirstDefined<Source, T>(
  sources: readonly Source[],
  look: (source: Source, signal: AbortSignal) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const scope = createAbortScope(signal);
  const failures: unknown[] = [];
  try {
    return await new Promise((resolve, reject) => {
      let pending = sources.length;
      const settle = (): void => {
        pending -= 1;
        if (pending > 0) return;
        if (failures.length > 0) reject(failures[0]);
        else resolve(undefined);
      };
      if (pending === 0) resolve(undefined);
      for (const source of sources) {
        look(source, scope.signal).then(
          (result) => {
            if (result !== undefined) resolve(result);
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
    scope.cancel();
  }
}
