import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { openState, saveState } from "../../../devnet/cache/saved-state.js";
import { temporaryFolder } from "../../support/temporary-folder.js";

const twoDaysAgo = new Date(Date.now() - 48 * 3_600_000);

describe("kept states", () => {
  const folder = temporaryFolder();
  const state = (name: string): string => join(folder(), `state-${name}`);

  beforeAll(async () => {
    for (const name of ["unused", "used", "young"]) await saveState(state(name), new Map(), []);
    for (const name of ["artifacts-unused.json", "artifacts-young.json", "other.json"]) {
      await writeFile(join(folder(), name), "{}");
    }
    await mkdir(join(folder(), "running"));
    const old = ["state-unused", "state-used", "artifacts-unused.json", "other.json", "running"];
    for (const name of old) await utimes(join(folder(), name), twoDaysAgo, twoDaysAgo);
  });

  it("are forgotten, as compiled contracts are, when nobody has used them for a day", async () => {
    expect(await openState(state("used"))).toMatchObject({ transfers: [] });
    await saveState(state("new"), new Map(), []);
    expect((await readdir(folder())).sort()).toEqual([
      "artifacts-young.json",
      "other.json",
      "running",
      "state-new",
      "state-used",
      "state-young",
    ]);
    expect(await openState(state("unused"))).toBeUndefined();
  });
});
