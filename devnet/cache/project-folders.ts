import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder: the same from the sources and from the built files. */
export function findProjectFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("the local network runs from the project's folder");
    folder = parent;
  }
  return folder;
}

/** Where the local network keeps what it can make again. */
export function getCacheFolder(): string {
  return join(findProjectFolder(), ".devnet");
}
