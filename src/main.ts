#!/usr/bin/env node
import { COMMAND_NAMES, type Command, parseCommandLine, UsageError } from "./commands/command-line.js";

/** Exit code for an invalid command line. */
const USAGE_EXIT_CODE = 2;

/** Runs a command. Each command loads only the modules it needs. */
async function runCommand(command: Command): Promise<number> {
  const { env, stdout } = process;
  switch (command.name) {
    case "serve":
      await (await import("./commands/serve.js")).serve(env);
      return 0;
    case "check":
      return (await import("./commands/check.js")).checkEndpoints(command, env, stdout);
    case "compare":
      return (await import("./commands/compare.js")).compareWithSdk(command, env, stdout);
    case "replay":
      return (await import("./commands/replay.js")).replayRequests(command, stdout);
    case "index":
      return (await import("./commands/backfill-index.js")).runBackfill(command.from, env);
    case "help":
      stdout.write(
        (await import("./commands/help.js")).formatHelp(command.command, stdout.columns ?? 80, command.isAll),
      );
      return 0;
    case "version":
      stdout.write(`${(await import("./app/package-files.js")).findPackageRoot().version}\n`);
      return 0;
  }
}

// A closed output must not crash the process.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
let failureExitCode = 1;
try {
  const command = parseCommandLine(process.argv.slice(2));
  // Exit code 1 of these commands is a result, so their other failures have code 2.
  if (["check", "compare", "replay"].includes(command.name)) failureExitCode = USAGE_EXIT_CODE;
  process.exitCode = await runCommand(command);
} catch (error) {
  if (error instanceof UsageError) {
    const name = COMMAND_NAMES.find((name) => name === process.argv[2]);
    const help = name === undefined ? "hop-gateway --help" : `hop-gateway ${name} --help`;
    process.stderr.write(`hop-gateway: ${error.message}; see ${help}\n`);
    process.exit(USAGE_EXIT_CODE);
  }
  const { describeStartupError } = await import("./app/process-lifecycle.js");
  process.stderr.write(`hop-gateway: ${describeStartupError(error)}\n`);
  process.exit(failureExitCode);
}
