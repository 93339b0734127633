import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** A folder of its own for the tests around; gone after them. */
export function useTemporaryFolder(parent: string = tmpdir()): () => string {
  let folder: string | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(parent, "hop-gateway-"));
  });
  afterAll(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });
  return () => {
    if (folder === undefined) throw new Error("the folder is there only while the tests run");
    return folder;
  };
}
