import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Returns the project's root folder, both from the sources and from dist/. */
export function findProjectFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("the local network needs the project's folder");
    folder = parent;
  }
  return folder;
}

/** Returns the folder of caches of the local network. */
export function getCacheFolder(): string {
  return join(findProjectFolder(), ".devnet");
}
