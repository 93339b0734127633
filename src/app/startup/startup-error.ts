import { ConfigError } from "../../config/config.js";

/** An expected failure at startup. Its message is printed without a stack trace. */
export class StartupError extends Error {
  override readonly name = "StartupError";
}

/** Returns what to print for a failed start: only the message for expected errors and system errors, else the stack. */
export function describeStartupError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isSystemError = (error as NodeJS.ErrnoException).syscall !== undefined;
  const isExpected = error instanceof ConfigError || error instanceof StartupError || isSystemError;
  return isExpected ? error.message : (error.stack ?? error.message);
}
