import fc from "fast-check";

/** Returns FUZZ_SEED, which repeats an earlier run, or else a random seed. */
function chooseSeed(): number {
  const { FUZZ_SEED } = process.env;
  return FUZZ_SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(FUZZ_SEED);
}

/** Prints the seed and checks a property. It does not shrink: every failure names its own input. */
export async function runProperty<T>(property: fc.IAsyncProperty<T>, numRuns: number): Promise<void> {
  const seed = chooseSeed();
  process.stdout.write(`seed: ${seed} (FUZZ_SEED=${seed} repeats this run)\n`);
  await fc.assert(property, { seed, numRuns, endOnFailure: true });
}
