import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isFullEffort } from "../../support/effort.js";
import { isAlive, listDescendants } from "../../support/service/child-processes.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs the commands of the README through npm, as a person or a service manager does, and stops them with signals.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);

/** Starts an npm script on a free port and waits for its address. */
async function start(script: string, environment: Record<string, string> = {}) {
  const child = spawn("npm", ["run", script], {
    cwd: project,
    env: { ...process.env, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", LOG_LEVEL: "silent", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    // A separate process group, so that a failed test can kill all of it.
    detached: true,
  });
  let text = "";
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      text += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
      if (found !== null) resolve(found[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`ended with ${code}:\n${text}`)));
  });
  return { child, url };
}

/** Signals a process; resolves to its exit code once it and all its descendants have exited. */
async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const descendants = await listDescendants(child.pid ?? 0);
  expect(descendants.length).toBeGreaterThan(0);
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  child.kill(signal);
  const code = await ended;
  await expect.poll(() => descendants.filter(isAlive)).toEqual([]);
  return code;
}

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined && isAlive(-pid)) process.kill(-pid, "SIGKILL");
}

async function getJson(url: string): Promise<Readonly<Record<string, unknown>>> {
  return (await (await fetch(url)).json()) as Record<string, unknown>;
}

describe("npm run demo", () => {
  const folder = useTemporaryFolder();
  let demo: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    demo = await start("demo", { TMPDIR: folder() });
  });
  afterAll(() => endGroup(demo.child));

  test("is ready when it has printed its address", async () => {
    expect(await getJson(`${demo.url}/readyz`)).toMatchObject({ status: "ready" });
  });

  test("bonds the transfers of npm run devnet:send", async () => {
    const transfer = "--token USDT --from polygon --to arbitrum --amount 25".split(" ");
    const { stdout } = await run("npm", ["run", "--silent", "devnet:send", "--", ...transfer], { cwd: project });
    const hash = /0x[0-9a-f]{64}/.exec(stdout)?.[0];
    const status = async () => (await getJson(`${demo.url}/v1/transfer-status?transferHash=${hash}`)).state;
    expect(await status()).toBe("PENDING");
    await expect.poll(status, { interval: 500 }).toBe("BONDED");
  });

  test("lists the transfers of an account, without a compiled driver", async () => {
    const account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
    const list = async () => (await getJson(`${demo.url}/v1/transfers?account=${account}`)).transfers;
    await expect.poll(list, { interval: 500 }).toContainEqual(expect.objectContaining({ accountAddress: account }));
    // The driver's binaries are in its package: npm compiles nothing.
    expect(readFileSync(join(project, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
  });

  test("leaves nothing behind after Ctrl-C, which reaches npm and the demo", async () => {
    const { child } = demo;
    const left = () => readdirSync(folder()).filter((name) => name.startsWith("hop-gateway-demo-"));
    expect(left()).toHaveLength(1);
    const descendants = await listDescendants(child.pid ?? 0);
    const ended = once(child, "exit");
    process.kill(-(child.pid ?? 0), "SIGINT");
    await ended;
    await expect.poll(() => descendants.filter(isAlive)).toEqual([]);
    expect(left()).toEqual([]);
  });
});

// In the long form: it starts another network.
test.runIf(isFullEffort)("npm run demo exits on SIGTERM with code 0 and leaves no process behind", async () => {
  const { child } = await start("demo");
  onTestFinished(() => endGroup(child));
  expect(await end(child, "SIGTERM")).toBe(0);
});

describe("npm start", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("serves without internet and exits on %s with code 0", async (signal) => {
    const { child, url } = await start("start", { ASSETS_URL: "off" });
    expect(((await (await fetch(`${url}/v1/available-routes`)).json()) as unknown[]).length).toBe(240);
    expect(await end(child, signal)).toBe(0);
  });
});
