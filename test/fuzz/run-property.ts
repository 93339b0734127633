import fc from "fast-check";

/** Prints the seed, in case the process dies, and checks a property. It does not shrink: every failure names its own input. */
export async function runProperty<T>(property: fc.IAsyncProperty<T>, numRuns: number): Promise<void> {
  const { seed } = fc.readConfigureGlobal();
  process.stdout.write(`seed: ${seed} (FUZZ_SEED=${seed} repeats this run)\n`);
  await fc.assert(property, { numRuns, endOnFailure: true });
}
