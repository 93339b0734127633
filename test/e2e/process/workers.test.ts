import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { createServer } from "node:net";
import { afterEach, beforeAll, expect, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { listChildProcesses } from "../../support/service/child-processes.js";

// Workers are processes: they are started, signalled and killed here as an operating system would.

let command: string;
beforeAll(async () => {
  command = await buildService();
});

const started: ChildProcess[] = [];
afterEach(() => {
  for (const { pid, exitCode, signalCode } of started.splice(0)) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
  }
});

/** Runs the service; `said` is all that it has printed. */
function launch(environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, [command], {
    env: {
      ...process.env,
      HOST: "127.0.0.1",
      PORT: "0",
      ASSETS_URL: "off",
      WORKERS: "2",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, as a terminal gives it.
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
  return { pid, said: () => text, ended, signal: (name: NodeJS.Signals) => process.kill(pid, name) };
}

async function start(environment: Record<string, string> = {}) {
  const service = launch(environment);
  const ended = service.ended.then((code) => Promise.reject(new Error(`ended with ${code}: ${service.said()}`)));
  await Promise.race([expect.poll(service.said).toMatch(/listens on \S+\n/), ended]);
  ended.catch(() => {});
  const url = /listens on (\S+)\n/.exec(service.said())?.[1] ?? "";
  const workers = await listChildProcesses(service.pid);
  expect(workers).toHaveLength(2);
  return { ...service, url, workers };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** GET over a connection of the agent; `isReused`: it has answered before. */
function ask(agent: Agent, url: string): Promise<{ status: number; isReused: boolean }> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/v1/available-routes?token=ETH`, { agent }, (response) => {
      response
        .resume()
        .once("end", () => resolve({ status: response.statusCode ?? 0, isReused: request.reusedSocket }));
    });
    request.once("error", (cause) => reject(Object.assign(cause, { isReused: request.reusedSocket })));
  });
}

/** Asks all the time over so many connections until the service takes no more of them. */
async function load(url: string, connections: number) {
  const answered = { count: 0 };
  const lost: string[] = [];
  const caller = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (;;) {
      try {
        const { status } = await ask(agent, url);
        if (status === 200) answered.count += 1;
        else lost.push(`status ${status}`);
      } catch (error) {
        const { isReused, code } = error as { isReused: boolean; code?: string };
        // A new connection that is not taken is no request lost.
        if (isReused) lost.push(code ?? String(error));
        agent.destroy();
        return;
      }
    }
  };
  const over = Promise.all(Array.from({ length: connections }, caller));
  return { answered, lost, over };
}

test("two workers answer on one port; SIGTERM under load loses no request", async () => {
  const { url, said, signal, ended, workers } = await start();
  const { answered, lost, over } = await load(url, 20);
  await expect.poll(() => answered.count).toBeGreaterThan(200);
  signal("SIGTERM");
  expect(await ended).toBe(0);
  await over;
  expect(lost).toEqual([]);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  expect(said()).toBe(`hop-gateway listens on ${url}\n`);
});

test("connections go to both workers", async () => {
  const { url, workers, signal, ended } = await start();
  const [stopped = 0] = workers;
  // A worker that stands still takes the connections that are its turn.
  process.kill(stopped, "SIGSTOP");
  const asked = Array.from({ length: 4 }, () =>
    fetch(`${url}/v1/available-routes?token=ETH`, { headers: { connection: "close" } }).then(() => "answered"),
  );
  const patience = new Promise<string>((resolve) => setTimeout(() => resolve("waits"), 1_000));
  const outcomes = await Promise.all(asked.map((each) => Promise.race([each, patience])));
  expect(new Set(outcomes)).toEqual(new Set(["answered", "waits"]));
  process.kill(stopped, "SIGCONT");
  await Promise.all(asked);
  signal("SIGTERM");
  expect(await ended).toBe(0);
});

test("Ctrl-C, which reaches every process of the terminal, ends it gracefully", async () => {
  const { pid, url, ended, said, workers } = await start();
  const { answered, lost, over } = await load(url, 4);
  await expect.poll(() => answered.count).toBeGreaterThan(20);
  process.kill(-pid, "SIGINT");
  expect(await ended).toBe(0);
  await over;
  expect(lost).toEqual([]);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
  expect(said()).toBe(`hop-gateway listens on ${url}\n`);
});

test("a second signal ends everything at once, workers that stand still too", async () => {
  const { signal, ended, workers } = await start();
  for (const worker of workers) process.kill(worker, "SIGSTOP");
  signal("SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(workers.filter(isAlive)).toEqual(workers);
  signal("SIGTERM");
  expect(await ended).toBe(1);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

test("workers that do not stop in time are ended, and the exit code tells", async () => {
  const { signal, ended, workers, said } = await start({ REQUEST_TIMEOUT_MS: "1" });
  const [stuck = 0] = workers;
  process.kill(stuck, "SIGSTOP");
  signal("SIGTERM");
  expect(await ended).toBe(1);
  expect(said()).toContain("1 of 2 workers did not stop cleanly");
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

test("a worker that is killed is replaced on the same port, and so are all of them at once", async () => {
  const { pid, url, workers, said, signal, ended } = await start();
  for (const worker of workers) process.kill(worker, "SIGKILL");
  await expect
    .poll(async () => (await listChildProcesses(pid)).filter((each) => !workers.includes(each)).length, {
      timeout: 10_000,
    })
    .toBe(2);
  const isServed = (): Promise<boolean> =>
    fetch(`${url}/v1/available-routes?token=ETH`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(isServed).toBe(true);
  expect(said().match(/"signal":"SIGKILL".*worker exited; restarting/g)).toHaveLength(2);
  signal("SIGTERM");
  expect(await ended).toBe(0);
});

test("the workers end when the process over them is killed", async () => {
  const { signal, workers } = await start();
  signal("SIGKILL");
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

test("callers have one limit over all workers", async () => {
  const { url, signal, ended } = await start({ IP_RATE_LIMIT_REQ_PER_SEC: "10", IP_RATE_LIMIT_WINDOW_MS: "60000" });
  const statuses: number[] = [];
  for (let request = 0; request < 20; request++) {
    // A connection of its own each: they go to the workers in turn.
    const { status } = await fetch(`${url}/v1/available-routes?token=ETH`, { headers: { connection: "close" } });
    statuses.push(status);
  }
  expect(statuses).toEqual([...Array(10).fill(200), ...Array(10).fill(429)]);
  signal("SIGTERM");
  expect(await ended).toBe(0);
});

test("a wrong configuration is told once and ends with code 1", async () => {
  const { ended, said } = launch({ LOG_LEVEL: "loud" });
  expect(await ended).toBe(1);
  expect(said().match(/LOG_LEVEL is not/g)).toHaveLength(1);
});

test("a port in use is told once and ends with code 1", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  try {
    const { ended, said } = launch({ PORT: `${port}` });
    expect(await ended).toBe(1);
    expect(said()).toMatch(new RegExp(`^hop-gateway: \\S+ EADDRINUSE[^\\n]*127\\.0\\.0\\.1:${port}\\n$`));
  } finally {
    other.close();
  }
});

test("a stop while the workers start ends with code 0", async () => {
  const { pid, signal, ended } = launch();
  await expect.poll(() => listChildProcesses(pid), { interval: 20 }).toHaveLength(2);
  signal("SIGTERM");
  expect(await ended).toBe(0);
});
