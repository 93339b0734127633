import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The package that this code belongs to, wherever it is installed and wherever in it this code was compiled to. */
export interface PackageRoot {
  /** Its folder, as a file URL that ends with a slash. */
  readonly url: URL;
  readonly version: string;
}

const PACKAGE_NAME = "hop-gateway";

/** Throws where this code lies in no package of ours. */
export function findPackageRoot(): PackageRoot {
  for (let url = new URL(".", import.meta.url); ; url = new URL("..", url)) {
    const file = fileURLToPath(new URL("package.json", url));
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: unknown; version?: unknown };
      if (name === PACKAGE_NAME && typeof version === "string") return { url, version };
    }
    if (url.pathname === "/") throw new Error(`this code is not in the package ${PACKAGE_NAME}`);
  }
}
