import fc from "fast-check";

// Vitest's setupFile of all projects. Every run draws the same inputs, so that a verdict depends on the commit alone;
// `npm run test:new-seeds` looks for inputs that nobody has tried yet.

const { FUZZ_SEED = "1" } = process.env;

// fast-check's seeds are integers of 32 bits.
const seed = FUZZ_SEED === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(FUZZ_SEED);
if (!Number.isInteger(seed)) throw new Error(`FUZZ_SEED is ${FUZZ_SEED}: allowed are an integer and "random"`);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
