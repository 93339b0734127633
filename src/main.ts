#!/usr/bin/env node
import { type Command, parseCommandLine, UsageError } from "./commands/command-line.js";

/** Each command loads what it needs, and no more. */
async function runCommand(command: Command): Promise<number> {
  const { env, stdout } = process;
  switch (command.name) {
    case "serve":
      await (await import("./commands/serve.js")).serve(env);
      return 0;
    case "check":
      return (await import("./commands/check.js")).checkEndpoints(command, env, stdout);
    case "index":
      return (await import("./commands/backfill-index.js")).runBackfill(command.from, env);
    case "help":
      stdout.write((await import("./commands/help.js")).formatHelp(command.of, stdout.columns ?? 80));
      return 0;
    case "version":
      stdout.write(`${(await import("./app/package-root.js")).findPackageRoot().version}\n`);
      return 0;
  }
}

/** Exit code of a command that is written wrong. */
const USAGE_EXIT_CODE = 2;

// Whoever started us may not read what we say.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
let failureExitCode = 1;
try {
  const command = parseCommandLine(process.argv.slice(2));
  // What it finds has codes of its own.
  if (command.name === "check") failureExitCode = USAGE_EXIT_CODE;
  process.exitCode = await runCommand(command);
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`hop-gateway: ${error.message}; hop-gateway --help says what there is\n`);
    process.exit(USAGE_EXIT_CODE);
  }
  const { describeStartupError } = await import("./app/startup-error.js");
  process.stderr.write(`hop-gateway: ${describeStartupError(error)}\n`);
  process.exit(failureExitCode);
}
