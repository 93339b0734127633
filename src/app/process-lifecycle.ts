import { type Config, ConfigError } from "../config/config.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow } from "../resilience/clock.js";

/** An expected failure at startup. Its message is printed without a stack trace. */
export class StartupError extends Error {
  override readonly name = "StartupError";
}

/** Returns what to print for a failed start: only the message for expected errors and system errors, else the stack. */
export function describeStartupError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { syscall } = error as NodeJS.ErrnoException;
  if (isListenError(error)) return describeListenError(error, { host: "HOST", port: "PORT" });
  const isExpected = error instanceof ConfigError || error instanceof StartupError || syscall !== undefined;
  return isExpected ? error.message : (error.stack ?? error.message);
}

/** Error of Node.js for an address that cannot be listened on. */
interface ListenError extends NodeJS.ErrnoException {
  readonly address?: string;
  readonly port?: number;
}

function isListenError(error: NodeJS.ErrnoException): error is ListenError {
  return error.syscall === "listen" || error.syscall === "bind";
}

/** Returns why an address cannot be listened on, and by which of its variables that is mended. */
export function describeListenError(
  { code, address, port, message }: ListenError,
  variables: { readonly host: string; readonly port: string },
): string {
  switch (code) {
    case "EADDRINUSE":
      return `port ${port} is in use: set ${variables.port} to another one, or to 0 for a free one`;
    case "EACCES":
      return `port ${port} needs more rights than this user has: set ${variables.port} to another one`;
    case "EADDRNOTAVAIL":
      return `${address} is not an address of this machine: correct ${variables.host}`;
    default:
      return message;
  }
}

/** Logs what an operator should know about the configuration. For the process that the operator started: workers repeat it. */
export function logStartupWarnings(
  { customRpcUrlPolicy, sharedStateUrl, workerCount, warnings }: Config,
  logger: Logger,
): void {
  for (const warning of warnings) logger.warn(warning);
  if (workerCount > 1 && sharedStateUrl === undefined)
    logger.info({ workers: workerCount }, "each worker reads the chains for itself; SHARED_STATE lets them share");
  if (customRpcUrlPolicy !== "any") return;
  // Answers allow every origin (CORS), and a request without a preflight is sent even where its answer may not be read.
  const risk =
    "CUSTOM_RPC_URLS=any: every caller can make this service call any address on its network, and so can any web page " +
    "that is open in a browser which reaches the service; for development only";
  logger.warn(risk);
}

/** Ctrl-C reaches npm and what it runs, and npm passes it on: signals within this time are one. */
const REPEATED_SIGNAL_MS = 500;

/**
 * Stops on SIGTERM or SIGINT and exits: with code 0 when the stop succeeds, 1 when it fails. A second signal, half a second
 * later or more, exits immediately with code 1.
 */
export function stopOnSignals(stop: () => Promise<void>, now: () => number = monotonicNow): void {
  let stoppingSince: number | undefined;
  const onSignal = (): void => {
    if (stoppingSince === undefined) {
      stoppingSince = now();
      exitAfter(stop());
    } else if (now() - stoppingSince >= REPEATED_SIGNAL_MS) process.exit(1);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** Exits when a stop has finished: with code 0 when it succeeds, 1 when it fails. */
export function exitAfter(stopped: Promise<void>): void {
  stopped.then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`hop-gateway: shutdown failed: ${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
}
