import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCacheFolder } from "./cache/project-folders.js";

/** Addresses of a running demo. */
export interface RunningDemo {
  readonly gatewayUrl: string;
  readonly chains: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>;
}

interface RegistryEntry {
  readonly demo: RunningDemo;
  /** Time of registration, milliseconds since 1970. */
  readonly registeredAtMs: number;
}

/** Folder with one file per demo, named after its process id. */
const defaultRegistryFolder = (): string => join(getCacheFolder(), "running");

/** Registers a running demo. Returns a function that removes the registration. */
export async function registerDemo(
  demo: RunningDemo,
  pid: number = process.pid,
  folder: string = defaultRegistryFolder(),
): Promise<() => Promise<void>> {
  const file = join(folder, `${pid}.json`);
  await mkdir(folder, { recursive: true });
  // A fraction of a millisecond, unlike file times, so that no two demos have the same age.
  const registeredAtMs = performance.timeOrigin + performance.now();
  await writeFile(file, JSON.stringify({ demo, registeredAtMs } satisfies RegistryEntry, undefined, 2));
  return () => rm(file, { force: true });
}

/** Returns the running demo that was registered last, or undefined. Removes registrations of killed processes. */
export async function findRunningDemo(folder: string = defaultRegistryFolder()): Promise<RunningDemo | undefined> {
  let youngest: RegistryEntry | undefined;
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    if (!isAlive(Number.parseInt(name, 10))) {
      await rm(file, { force: true });
      continue;
    }
    const entry = JSON.parse(await readFile(file, "utf8")) as RegistryEntry;
    if (youngest === undefined || entry.registeredAtMs > youngest.registeredAtMs) youngest = entry;
  }
  return youngest?.demo;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
