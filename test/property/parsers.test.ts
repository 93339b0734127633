import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

// Replays the inputs that coverage-guided fuzzing has found (test/fuzz/parsers), in this process and without the fuzzer.

const folder = new URL("../fuzz/parsers/", import.meta.url);
const names = readdirSync(new URL("corpus/", folder)).map((file) => file.replace(".txt", ""));

test("there is a corpus for each kind of input", () => {
  expect(names.sort()).toEqual([
    ...["multicall", "protobuf", "query", "rlp", "rpc-results", "tokens", "transfer-events"],
  ]);
});

describe.each(names)("what was found for %s", (name) => {
  const inputs = readFileSync(new URL(`corpus/${name}.txt`, folder), "utf8")
    .trim()
    .split("\n");

  test(`holds for all ${inputs.length} inputs`, async () => {
    const { fuzz } = (await import(`../fuzz/parsers/${name}.ts`)) as { fuzz: (data: Buffer) => void };
    for (const input of inputs) {
      expect(() => fuzz(Buffer.from(input, "base64")), `input ${input}`).not.toThrow();
    }
  });
});
