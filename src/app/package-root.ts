import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The package that contains this code, wherever it is installed or compiled to. */
export interface PackageRoot {
  /** The package folder, as a file URL that ends with a slash. */
  readonly url: URL;
  readonly version: string;
}

const PACKAGE_NAME = "hop-gateway";

/**
 * Finds the package root by walking up from this file.
 * @throws Error when no parent folder is the package hop-gateway
 */
export function findPackageRoot(): PackageRoot {
  for (let url = new URL(".", import.meta.url); ; url = new URL("..", url)) {
    const file = fileURLToPath(new URL("package.json", url));
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: unknown; version?: unknown };
      if (name === PACKAGE_NAME && typeof version === "string") return { url, version };
    }
    if (url.pathname === "/") throw new Error(`this code is not inside the package ${PACKAGE_NAME}`);
  }
}
