import { execFile } from "node:child_process";

/** How a command ended. */
export interface EndedCommand {
  /** The exit code, or the signal that ended it. */
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a script with Node.js to its end, with these variables and `PATH` as its whole environment. */
export function runCommand(
  script: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<EndedCommand> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, ...environment } };
    const child = execFile(process.execPath, [script, ...args], options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? child.signalCode, stdout, stderr }),
    );
  });
}
