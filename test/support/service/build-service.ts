import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const project = fileURLToPath(new URL("../../..", import.meta.url));

/** Builds the service for tests that start it as a process, and returns the path of its command. */
export async function buildService(): Promise<string> {
  await promisify(execFile)(process.execPath, [`${project}packaging/build.js`]);
  // A build during the tests changes where the link leads.
  return await realpath(`${project}dist/src/main.js`);
}
