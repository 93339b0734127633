import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** Creates a temporary folder for the tests of the current suite and removes it after them. */
export function useTemporaryFolder(parent: string = tmpdir()): () => string {
  let folder: string | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(parent, "hop-gateway-"));
  });
  afterAll(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });
  return () => {
    if (folder === undefined) throw new Error("the folder exists only while the tests run");
    return folder;
  };
}
