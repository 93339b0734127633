import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { openSavedState, saveChainState } from "../../../devnet/cache/saved-state.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const twoDaysAgo = new Date(Date.now() - 48 * 3_600_000);

describe("saved states", () => {
  const folder = useTemporaryFolder();
  const state = (name: string): string => join(folder(), `state-${name}`);

  beforeAll(async () => {
    for (const name of ["unused", "used", "young"]) await saveChainState(state(name), new Map(), []);
    for (const name of ["artifacts-unused.json", "artifacts-young.json", "other.json"]) {
      await writeFile(join(folder(), name), "{}");
    }
    await mkdir(join(folder(), "running"));
    const old = ["state-unused", "state-used", "artifacts-unused.json", "other.json", "running"];
    for (const name of old) await utimes(join(folder(), name), twoDaysAgo, twoDaysAgo);
  });

  it("are deleted after a day without use, like compiled contracts", async () => {
    expect(await openSavedState(state("used"))).toMatchObject({ transfers: [] });
    await saveChainState(state("new"), new Map(), []);
    expect((await readdir(folder())).sort()).toEqual([
      "artifacts-young.json",
      "other.json",
      "running",
      "state-new",
      "state-used",
      "state-young",
    ]);
    expect(await openSavedState(state("unused"))).toBeUndefined();
  });
});
