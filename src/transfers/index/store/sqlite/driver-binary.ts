import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { IndexUnavailableError } from "../index-unavailable-error.js";

/** Where npm's install scripts leave the binary. packaging/sqlite.js moves those that it has built. */
const INSTALLED_BINARY = "build/Release/better_sqlite3.node";
/** The function that packaging/sqlite-object-wrap.h keeps out of a binary. */
const UNSAFE_FUNCTION = "RemoveEnvironmentCleanupHook";

/** How to build the driver. */
export const BUILD_DRIVER =
  "run `npm run build:sqlite` in a checkout, or `node node_modules/hop-gateway/packaging/sqlite.js` where the package is installed";

/**
 * Checks that the SQLite driver, if it is installed, does not end the process at some collection of garbage, as one does that
 * npm has compiled with the headers of Node.js 24.19 or newer (nodejs/node#65446). Nothing can catch that.
 * @throws IndexUnavailableError when it would
 */
export async function assertSafeDriver(): Promise<void> {
  // Node.js 26 does not end the process.
  if (!process.version.startsWith("v24.")) return;
  const binary = await readFile(join(findDriver(), INSTALLED_BINARY)).catch(() => undefined);
  if (binary?.includes(UNSAFE_FUNCTION))
    throw new IndexUnavailableError(
      `the SQLite driver that npm has built would end the process at some time (nodejs/node#65446): ${BUILD_DRIVER}; or set INDEX=off`,
    );
}

function findDriver(): string {
  try {
    return dirname(createRequire(import.meta.url).resolve("better-sqlite3/package.json"));
  } catch {
    return "";
  }
}
