import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { LocalChains } from "../chain/local-chains.js";
import type { SeededTransfer } from "../seed/seeded-transfer.js";
import { findProjectFolder } from "./project-folders.js";

const TRANSFERS_FILE = "transfers.json";
/** Cached files: chain states and compiled contracts. */
const DISPOSABLE_NAME = /^(?:state|artifacts)-/;
/** A cached file that is unused for this long belongs to sources that have changed. */
const UNUSED_TTL_MS = 24 * 3600 * 1000;

/** The saved state of every chain of a built network. Immutable once it exists. */
export interface SavedState {
  readonly transfers: readonly SeededTransfer[];
  /** Returns the path of the state file of a chain. */
  chainFile(slug: string): string;
}

/** Computes the name of the state of these chains: a hash of everything that influences it. */
export async function computeStateName(slugs: readonly string[]): Promise<string> {
  const project = findProjectFolder();
  const hash = createHash("sha256").update(JSON.stringify(slugs));
  // package.json pins anvil, the compiler and the address book.
  hash.update(await readFile(join(project, "package.json")));
  for (const folder of ["devnet", "src/hop", "src/prices"]) {
    const entries = await readdir(join(project, folder), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    for (const file of files.sort()) hash.update(file.slice(project.length)).update(await readFile(file));
  }
  return `state-${hash.digest("hex").slice(0, 16)}`;
}

/** Opens a saved state. Returns undefined if there is none. */
export async function openSavedState(folder: string): Promise<SavedState | undefined> {
  if (!existsSync(folder)) return undefined;
  await utimes(folder, new Date(), new Date());
  return {
    transfers: JSON.parse(await readFile(join(folder, TRANSFERS_FILE), "utf8")) as SeededTransfer[],
    chainFile: (slug) => join(folder, `${slug}.json`),
  };
}

/**
 * Saves the current state of the chains. The folder appears atomically, so that several processes may build the same state
 * at once: the first one wins, the others' result is discarded.
 */
export async function saveChainState(
  folder: string,
  chains: LocalChains,
  transfers: readonly SeededTransfer[],
): Promise<void> {
  const draft = `${folder}.${randomUUID()}`;
  await mkdir(draft, { recursive: true });
  try {
    const dumps = [...chains.values()].map(async ({ slug, rpc }) => {
      const dump = (await rpc("anvil_dumpState")) as string;
      await writeFile(join(draft, `${slug}.json`), gunzipSync(Buffer.from(dump.slice(2), "hex")));
    });
    await Promise.all(dumps);
    await writeFile(join(draft, TRANSFERS_FILE), JSON.stringify(transfers, undefined, 2));
    await rename(draft, folder);
    await deleteUnused(dirname(folder));
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

/** Deletes unused cached files, of which every change of the sources adds new ones. */
async function deleteUnused(parent: string): Promise<void> {
  for (const name of (await readdir(parent)).filter((entry) => DISPOSABLE_NAME.test(entry))) {
    const { mtimeMs } = await stat(join(parent, name));
    if (Date.now() - mtimeMs > UNUSED_TTL_MS) await rm(join(parent, name), { recursive: true, force: true });
  }
}
