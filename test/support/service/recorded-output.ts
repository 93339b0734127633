import { randomUUID } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { createLogger, type Logger } from "../../../src/observability/log.js";

declare module "vitest" {
  interface ProvidedContext {
    /** Where everything goes that gateways and processes under test say; searched for planted keys at the end. */
    outputFolder: string;
  }
}

/** A file of its own in the folder of what is said. */
export function createOutputPath(kind: string): string {
  return join(inject("outputFolder"), `${kind}-${randomUUID()}`);
}

/** A logger of every level whose lines are kept for the search. */
export function createFileLogger(): Logger {
  const file = openSync(createOutputPath("log"), "a");
  return createLogger("trace", { write: (line) => void writeSync(file, line) });
}
