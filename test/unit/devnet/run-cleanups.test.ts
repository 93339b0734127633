import { expect, it } from "vitest";
import { runCleanups } from "../../../devnet/run-cleanups.js";

it("runs all cleanups in order, also after failures, then throws the first error", async () => {
  const calls: string[] = [];
  const succeed = (name: string) => async (): Promise<void> => {
    calls.push(name);
  };
  const fail = (name: string) => async (): Promise<void> => {
    calls.push(name);
    throw new Error(`${name} failed`);
  };
  await runCleanups([succeed("a"), succeed("b")]);
  await expect(runCleanups([succeed("c"), fail("d"), succeed("e"), fail("f"), succeed("g")])).rejects.toThrow(
    "d failed",
  );
  expect(calls).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
});
