/**
 * Stops on SIGTERM or SIGINT and ends the process: 0 when the stop succeeds, 1 when it fails. A second signal ends it
 * at once.
 */
export function stopOnSignals(stop: () => Promise<void>): void {
  let stopping = false;
  const onSignal = (): void => {
    if (stopping) process.exit(1);
    stopping = true;
    exitAfter(stop());
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** Ends the process once a stop is done: 0 when it succeeds, 1 when it fails. */
export function exitAfter(stopped: Promise<void>): void {
  stopped.then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`hop-gateway: the stop failed: ${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
}
