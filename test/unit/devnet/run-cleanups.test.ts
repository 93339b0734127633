import { expect, it } from "vitest";
import { runCleanups } from "../../../devnet/run-cleanups.js";

it("ends all in order, also after failures, then throws the first of them", async () => {
  const ended: string[] = [];
  const end = (name: string) => async (): Promise<void> => {
    ended.push(name);
  };
  const fail = (name: string) => async (): Promise<void> => {
    ended.push(name);
    throw new Error(`${name} failed`);
  };
  await runCleanups([end("a"), end("b")]);
  await expect(runCleanups([end("c"), fail("d"), end("e"), fail("f"), end("g")])).rejects.toThrow("d failed");
  expect(ended).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
});
