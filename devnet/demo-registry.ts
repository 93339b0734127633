import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCacheFolder } from "./cache/project-folders.js";

/** Where a running demo can be reached. */
export interface RunningDemo {
  readonly gatewayUrl: string;
  readonly chains: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>;
}

interface RegistryEntry {
  readonly demo: RunningDemo;
  /** When it was made, milliseconds since 1970. */
  readonly registeredAtMs: number;
}

/** Holds one file for each demo, named after its process. */
const defaultRegistryFolder = (): string => join(getCacheFolder(), "running");

/** Leaves word of a demo that runs in a process; gives what takes the word back. */
export async function registerDemo(
  demo: RunningDemo,
  pid: number = process.pid,
  folder: string = defaultRegistryFolder(),
): Promise<() => Promise<void>> {
  const file = join(folder, `${pid}.json`);
  await mkdir(folder, { recursive: true });
  // Finer than milliseconds and than the times of files, so that two demos are never equally young.
  const registeredAtMs = performance.timeOrigin + performance.now();
  await writeFile(file, JSON.stringify({ demo, registeredAtMs } satisfies RegistryEntry, undefined, 2));
  return () => rm(file, { force: true });
}

/** The youngest of the demos that run; undefined: none. Takes back the word of those that were killed. */
export async function findRunningDemo(folder: string = defaultRegistryFolder()): Promise<RunningDemo | undefined> {
  let youngest: RegistryEntry | undefined;
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    if (!isAlive(Number.parseInt(name, 10))) {
      await rm(file, { force: true });
      continue;
    }
    const found = JSON.parse(await readFile(file, "utf8")) as RegistryEntry;
    if (youngest === undefined || found.registeredAtMs > youngest.registeredAtMs) youngest = found;
  }
  return youngest?.demo;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // There, but another user's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
