/**
 * Stops on SIGTERM or SIGINT and exits: with code 0 when the stop succeeds, 1 when it fails. A second signal exits
 * immediately with code 1.
 */
export function stopOnSignals(stop: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = (): void => {
    if (isStopping) process.exit(1);
    isStopping = true;
    exitAfter(stop());
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
