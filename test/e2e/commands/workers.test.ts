import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm, symlink } from "node:fs/promises";
import { Agent, get } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { isAlive, listChildProcesses } from "../../support/service/child-processes.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Starts, signals and kills real worker processes.

const folder = useTemporaryFolder();
let command: string;
beforeAll(async () => {
  command = await buildService();
});

const started: ChildProcess[] = [];
afterAll(() => {
  for (const { pid, exitCode, signalCode } of started) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
  }
});

/** Starts the service; `printed` returns its output so far. */
function launch(environment: Record<string, string> = {}, path: string = command) {
  const child = spawn(process.execPath, [path], {
    env: {
      ...process.env,
      // Without chains that respond, lookups of names would go on at the stop, and a process does not end before them.
      ...inject("network").environment,
      HOST: "127.0.0.1",
      PORT: "0",
      METRICS_PORT: "same",
      ASSETS_URL: "off",
      WORKERS: "2",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
    // A separate process group, as in a terminal.
    detached: true,
  });
  started.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      text += chunk;
    });
  }
  const ended = once(child, "close").then(([code]) => code as number | null);
  const pid = child.pid ?? 0;
  return { pid, printed: () => text, ended, signal: (name: NodeJS.Signals) => process.kill(pid, name) };
}

async function start(environment: Record<string, string> = {}, path: string = command) {
  const service = launch(environment, path);
  const ended = service.ended.then((code) => Promise.reject(new Error(`ended with ${code}: ${service.printed()}`)));
  const isListening = () => expect(service.printed()).toMatch(/listens on \S+\n/);
  await Promise.race([vi.waitFor(isListening, { timeout: 60_000, interval: 20 }), ended]);
  ended.catch(() => {});
  const url = /listens on (\S+)\n/.exec(service.printed())?.[1] ?? "";
  const workers = await listChildProcesses(service.pid);
  expect(workers).toHaveLength(2);
  return { ...service, url, workers };
}

/** Starts a service for the tests of a group, which use it in their order. Its members exist while they run. */
function useService(environment: Record<string, string> = {}, getPath = () => command) {
  const service: Partial<Awaited<ReturnType<typeof start>>> = {};
  beforeAll(async () => {
    Object.assign(service, await start(environment, getPath()));
  });
  return service as Awaited<ReturnType<typeof start>>;
}

/** Sends GET over a connection of the agent; `isReused`: the connection has served a request before. */
function sendGet(agent: Agent, url: string): Promise<{ status: number; isReused: boolean }> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/v1/available-routes?token=ETH`, { agent }, (response) => {
      response
        .resume()
        .once("end", () => resolve({ status: response.statusCode ?? 0, isReused: request.reusedSocket }));
    });
    request.once("error", (cause) => reject(Object.assign(cause, { isReused: request.reusedSocket })));
  });
}

/** The service closes a connection that is silent for 100 ms while it stops. */
const MAX_SILENCE_MS = 50;

/** Sends requests over the given number of connections until the service accepts no more. */
function generateLoad(url: string, connections: number) {
  const answered = { count: 0 };
  const lost: string[] = [];
  let turnAt = performance.now();
  let longestTurnMs = 0;
  const noteTurn = (): void => {
    longestTurnMs = Math.max(longestTurnMs, performance.now() - turnAt);
    turnAt = performance.now();
  };
  const timer = setInterval(noteTurn, 5);
  const caller = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (;;) {
      try {
        const { status } = await sendGet(agent, url);
        if (status === 200) answered.count += 1;
        else lost.push(`status ${status}`);
      } catch (error) {
        const { isReused, code } = error as { isReused: boolean; code?: string };
        // A new connection that is not accepted is not a lost request.
        if (isReused) lost.push(code ?? String(error));
        agent.destroy();
        return;
      }
    }
  };
  const over = Promise.all(Array.from({ length: connections }, caller));
  return {
    answered,
    /** Call it when the service is told to stop. */
    beginStop() {
      noteTurn();
      longestTurnMs = 0;
    },
    /** Returns why requests were lost. Those that this process sends late may be reset. */
    async findLost(): Promise<readonly string[]> {
      await over;
      noteTurn();
      clearInterval(timer);
      return longestTurnMs > MAX_SILENCE_MS ? lost.filter((reason) => reason !== "ECONNRESET") : lost;
    },
  };
}

describe("two workers", () => {
  const service = useService();

  test("share the connections to one port", async () => {
    const { url, workers } = service;
    const [stopped = 0] = workers;
    // A stopped worker still gets its share of the connections.
    process.kill(stopped, "SIGSTOP");
    const asked = Array.from({ length: 4 }, () =>
      fetch(`${url}/v1/available-routes?token=ETH`, { headers: { connection: "close" } }).then(() => "answered"),
    );
    // By the other one.
    expect(await Promise.any(asked)).toBe("answered");
    const patience = new Promise<string>((resolve) => setTimeout(() => resolve("waits"), 1_000));
    const outcomes = await Promise.all(asked.map((each) => Promise.race([each, patience])));
    expect(outcomes).toContain("waits");
    process.kill(stopped, "SIGCONT");
    await Promise.all(asked);
  });

  test("lose no request on SIGTERM under load", async () => {
    const { url, printed, signal, ended, workers } = service;
    const load = generateLoad(url, 20);
    await expect.poll(() => load.answered.count).toBeGreaterThan(200);
    load.beginStop();
    signal("SIGTERM");
    expect(await ended).toBe(0);
    expect(await load.findLost()).toEqual([]);
    await expect.poll(() => workers.filter(isAlive)).toEqual([]);
    expect(printed()).toBe(`hop-gateway listens on ${url}\n`);
  });
});

test("shuts down gracefully on Ctrl-C, which signals every process of the terminal", async () => {
  const { pid, url, ended, printed, workers } = await start();
  const load = generateLoad(url, 4);
  await expect.poll(() => load.answered.count).toBeGreaterThan(20);
  load.beginStop();
  process.kill(-pid, "SIGINT");
  expect(await ended).toBe(0);
  expect(await load.findLost()).toEqual([]);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  expect(printed()).toBe(`hop-gateway listens on ${url}\n`);
});

test("exits immediately on a second signal, even with stopped workers", async () => {
  const { signal, ended, workers } = await start();
  for (const worker of workers) process.kill(worker, "SIGSTOP");
  signal("SIGTERM");
  // Earlier ones count as the first.
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(workers.filter(isAlive)).toEqual(workers);
  signal("SIGTERM");
  expect(await ended).toBe(1);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

test("kills workers that do not stop in time and exits with code 1", async () => {
  const { signal, ended, workers, printed } = await start({ REQUEST_TIMEOUT_MS: "1" });
  const [stuck = 0] = workers;
  process.kill(stuck, "SIGSTOP");
  signal("SIGTERM");
  expect(await ended).toBe(1);
  expect(printed()).toContain("1 of 2 workers did not stop cleanly");
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

describe("killed", () => {
  const link = () => join(folder(), "main.js");
  beforeAll(() => symlink(command, link()));
  const service = useService({}, link);

  test("workers are restarted on the same port, even all at once and after a build moved the command", async () => {
    const { pid, url, workers, printed } = service;
    await rm(link());
    for (const worker of workers) process.kill(worker, "SIGKILL");
    const countNew = async () => (await listChildProcesses(pid)).filter((each) => !workers.includes(each)).length;
    await expect.poll(countNew, { timeout: 10_000 }).toBe(2);
    const isServed = (): Promise<boolean> =>
      fetch(`${url}/v1/available-routes?token=ETH`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(isServed).toBe(true);
    expect(printed().match(/"signal":"SIGKILL".*worker exited; restarting/g)).toHaveLength(2);
  });

  test("a primary takes its workers with it", async () => {
    const workers = await listChildProcesses(service.pid);
    service.signal("SIGKILL");
    await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  });
});

/** Makes the third start of a child process fail as where the system has no memory for one: Node.js throws then. */
const LACK_MEMORY_ONCE = `
import { ChildProcess } from "node:child_process";
const { spawn } = ChildProcess.prototype;
let starts = 0;
ChildProcess.prototype.spawn = function (options) {
  starts += 1;
  if (starts === 3) throw Object.assign(new Error("spawn ENOMEM"), { code: "ENOMEM" });
  return spawn.call(this, options);
};`;

describe("a primary", () => {
  const service = useService({
    IP_RATE_LIMIT_REQ_PER_SEC: "10",
    IP_RATE_LIMIT_WINDOW_MS: "60000",
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(LACK_MEMORY_ONCE)}`,
  });

  test("shares one rate limit per caller among all workers", async () => {
    const statuses: number[] = [];
    for (let request = 0; request < 20; request++) {
      // Separate connections are distributed to the workers in turn.
      const close = { headers: { connection: "close" } };
      statuses.push((await fetch(`${service.url}/v1/available-routes?token=ETH`, close)).status);
    }
    expect(statuses).toEqual([...Array(10).fill(200), ...Array(10).fill(429)]);
  });

  test("restarts a killed worker later if there is no memory for it", async () => {
    const { pid, workers, printed, signal, ended } = service;
    const [killed = 0] = workers;
    process.kill(killed, "SIGKILL");
    await expect.poll(async () => (await listChildProcesses(pid)).filter((each) => each !== killed)).toHaveLength(2);
    expect(printed()).toMatch(/"error":"spawn ENOMEM","msg":"worker failed to start"/);
    signal("SIGTERM");
    expect(await ended).toBe(0);
  });
});

test("reports an invalid configuration once and exits with code 1", async () => {
  const { ended, printed } = launch({ LOG_LEVEL: "loud" });
  expect(await ended).toBe(1);
  expect(printed().match(/LOG_LEVEL is not/g)).toHaveLength(1);
});

test("reports a port in use once and exits with code 1", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  try {
    const { ended, printed } = launch({ PORT: `${port}` });
    expect(await ended).toBe(1);
    expect(printed()).toBe(`hop-gateway: port ${port} is in use: set PORT to another one, or to 0 for a free one\n`);
  } finally {
    other.close();
  }
});

test("exits with code 0 when stopped while the workers start", async () => {
  const { pid, signal, ended } = launch();
  await expect.poll(() => listChildProcesses(pid), { interval: 20 }).toHaveLength(2);
  signal("SIGTERM");
  expect(await ended).toBe(0);
});
