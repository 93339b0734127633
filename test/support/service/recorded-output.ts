import { randomUUID } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { createLogger, type Logger } from "../../../src/observability/log.js";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of all output of gateways and processes under test; it is searched for planted keys at the end. */
    outputFolder: string;
  }
}

/** Returns the path of a new file in the output folder. */
export function createOutputPath(kind: string): string {
  return join(inject("outputFolder"), `${kind}-${randomUUID()}`);
}

/** Creates a logger for all levels that writes to the output folder. */
export function createFileLogger(): Logger {
  const file = openSync(createOutputPath("log"), "a");
  return createLogger("trace", { write: (line) => void writeSync(file, line) });
}
