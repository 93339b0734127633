import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Runs in the service before it: sends the URLs of all scripts loaded so far for each message. */
const REPORTER = `
import { Session } from "node:inspector";
const urls = new Set();
const session = new Session();
session.connect();
session.on("Debugger.scriptParsed", ({ params }) => urls.add(params.url));
session.post("Debugger.enable");
process.on("message", () => process.send([...urls]));`;

/** The built service, which lists what it has loaded. */
export interface ReportingService {
  /** Returns the URLs of all scripts that are loaded: `file:` for the service and packages, `node:` for those of Node.js. */
  listScripts(): Promise<readonly string[]>;
  /** Returns the files of packages that are loaded, from the name of the package on. */
  listFiles(): Promise<readonly string[]>;
  listPackages(): Promise<readonly string[]>;
  get(path: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a built service and waits until it listens. */
export async function startReportingService(
  main: string,
  environment: Readonly<Record<string, string>>,
): Promise<ReportingService> {
  const preload = `data:text/javascript,${encodeURIComponent(REPORTER)}`;
  const child = spawn(process.execPath, ["--import", preload, main], {
    env: { PATH: process.env.PATH, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "same", ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const url = await readServiceUrl(child);

  async function listScripts(): Promise<readonly string[]> {
    const reply = once(child, "message") as Promise<[readonly string[]]>;
    child.send("list");
    return (await reply)[0];
  }
  const listFiles = async () =>
    (await listScripts()).flatMap((script) => script.split("/node_modules/").slice(1).slice(-1));

  return {
    listScripts,
    listFiles,
    async listPackages() {
      const names = (await listFiles()).map((file) => /^(@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? file);
      return [...new Set(names)].sort();
    },
    get: async (path) => (await fetch(`${url}${path}`)).text(),
    stop: () => killService(child),
  };
}

/** Returns the URL that a service prints when it listens, and discards what it prints afterwards. */
export async function readServiceUrl(child: ChildProcess): Promise<string> {
  const lines = createInterface(child.stdout as NonNullable<typeof child.stdout>);
  const [line] = (await once(lines, "line")) as [string];
  lines.on("line", () => {});
  return /^hop-gateway listens on (\S+)/.exec(line)?.[1] ?? "";
}

/** Kills a child process and waits for its exit. */
export async function killService(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
