import { ConfigError } from "../config/config.js";

/** A start that failed, told by the process in which it did, in words for whoever started it. */
export class StartupError extends Error {
  override readonly name = "StartupError";
}

/** What to print of a start that failed: without a stack where it is no fault of ours. */
export function describeStartupError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isOfTheSystem = (error as NodeJS.ErrnoException).syscall !== undefined;
  const isExpected = error instanceof ConfigError || error instanceof StartupError || isOfTheSystem;
  return isExpected ? error.message : (error.stack ?? error.message);
}
