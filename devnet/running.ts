import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "./project.js";

/** Where a running demo can be reached. */
export interface RunningDemo {
  readonly gatewayUrl: string;
  readonly chains: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>;
}

const file = (): string => join(cacheFolder(), "running.json");

/** Leaves word of a running demo; gives what takes the word back. */
export async function announceDemo(demo: RunningDemo): Promise<() => Promise<void>> {
  const text = JSON.stringify(demo, undefined, 2);
  await writeFile(file(), text);
  return async () => {
    // Another demo may have been started since: then the word is its own.
    if ((await readFile(file(), "utf8").catch(() => "")) === text) await rm(file(), { force: true });
  };
}

/** The demo that was started last and has not said goodbye; undefined: none. */
export async function findDemo(): Promise<RunningDemo | undefined> {
  const text = await readFile(file(), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as RunningDemo);
}
