import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Returns a function that loads a CommonJS package at its first call. If that fails, for instance because no file can be
 * opened, the next call tries again. `import()` would not: it repeats a failure for as long as the process lives. Node.js
 * also remembers for ever that it could not read the manifest that names the file to load: it is therefore read at once.
 */
export function createPackageLoader<Package>(name: string): () => Package {
  const file = require.resolve(name);
  return () => require(file) as Package;
}
