import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { QUOTE_PATHS } from "../../support/service/quote-paths.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// With WORKERS=3, one process reads each chain and document for all. A counting proxy is in front of every upstream.

const { chains, assetsUrl, attestationUrl } = inject("network");
let command: string;
let proxies: ReadonlyMap<string, RpcProxy>;
const services: ServiceProcess[] = [];

beforeAll(async () => {
  command = await buildService();
  const targets = [
    ...Object.entries(chains).map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url] as const),
    ["ASSETS_URL", assetsUrl] as const,
    ["ATTESTATION_API_URL", attestationUrl] as const,
  ];
  const started = targets.map(async ([name, url]) => [name, await startRpcProxy(url)] as const);
  proxies = new Map(await Promise.all(started));
});
afterAll(() => Promise.all([...proxies.values()].map((proxy) => proxy.close())));
afterEach(() => {
  for (const service of services.splice(0)) service.signal("SIGKILL");
});

async function start(workers: number, environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  for (const proxy of proxies.values()) proxy.reset();
  const urls = Object.fromEntries([...proxies].map(([name, { url }]) => [name, url]));
  const service = await startServiceProcess(command, {
    ...urls,
    WORKERS: `${workers}`,
    LOG_LEVEL: "info",
    ...environment,
  });
  services.push(service);
  return service;
}

/** Ten times the shortest interval between two reads of a chain. */
const DURATION_MS = 10_000;

/** Sends a request over a connection of its own: the connections are distributed to the workers in turn. */
async function get(url: string, path: string, headersTimeout?: number) {
  const dispatcher = new Agent({ pipelining: 0, ...(headersTimeout !== undefined && { headersTimeout }) });
  try {
    const { statusCode, headers, body } = await request(`${url}${path}`, { dispatcher });
    return { status: statusCode, age: Number(headers.age ?? 0), body: await body.text() };
  } finally {
    await dispatcher.close();
  }
}

/** Sends the same quotes for the same time, and returns the requests to each upstream. */
async function countRequests(workers: number): Promise<ReadonlyMap<string, number>> {
  const service = await start(workers);
  const startedAt = performance.now();
  while (performance.now() - startedAt < DURATION_MS) {
    const answers = await Promise.all(QUOTE_PATHS.map((path) => get(service.url, path)));
    expect(answers.map(({ status }) => status)).toEqual(QUOTE_PATHS.map(() => 200));
    await sleep(100);
  }
  const counts = new Map([...proxies].map(([name, { requests }]) => [name, requests.length]));
  service.signal("SIGTERM");
  await service.exitCode;
  return counts;
}

// The counts follow each other: again if the load of the machine changed in between.
test("three workers send about as many requests to the upstreams as one", { retry: 2 }, async () => {
  const [one, three] = [await countRequests(1), await countRequests(3)];
  const sum = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((a, b) => a + b, 0);
  expect(three.get("ASSETS_URL")).toBe(one.get("ASSETS_URL"));
  expect(three.get("ATTESTATION_API_URL")).toBe(one.get("ATTESTATION_API_URL"));
  expect(sum(three) / sum(one)).toBeLessThanOrEqual(1.2);
});

interface Answer {
  readonly status: number;
  readonly age: number;
}

/** How long a caller waits before it repeats a request. */
const REPEAT_AFTER_MS = 10_000;
const MAX_ATTEMPTS = 5;
/** Further quotes wait: a busy machine may answer fewer than are due. */
const MAX_UNANSWERED = 300;

/** A worker that is killed or hangs takes the requests with it that it has, or is about to get, and a caller repeats them. */
async function getRepeatedly(url: string, path: string): Promise<Answer> {
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
    const answer = await get(url, path, REPEAT_AFTER_MS).catch(() => undefined);
    if (answer !== undefined) return answer;
  }
  return get(url, path);
}

/** Sends quotes at a constant rate, whether or not the earlier ones are answered, until it is stopped. */
function generateLoad(url: string) {
  const sent: Promise<Answer>[] = [];
  let unanswered = 0;
  const timer = setInterval(() => {
    if (unanswered === MAX_UNANSWERED) return;
    unanswered += 1;
    const answer = getRepeatedly(url, QUOTE_PATHS[sent.length % QUOTE_PATHS.length] ?? "");
    const onAnswered = (): void => {
      unanswered -= 1;
    };
    sent.push(answer.finally(onAnswered));
  }, 25);
  return {
    count: () => sent.length,
    async stop(): Promise<readonly Answer[]> {
      clearInterval(timer);
      return Promise.all(sent);
    },
  };
}

/** Returns who has become the reader of a topic, in order, from the log. */
function listReaders(service: ServiceProcess, topic: string): readonly { readonly pid: number; readonly at: number }[] {
  return service
    .output()
    .stdout.split("\n")
    .filter((line) => line.includes("reads the topic") && line.includes(`"${topic}"`))
    .map((line) => JSON.parse(line) as { workerPid: number; time: string })
    .map(({ workerPid, time }) => ({ pid: workerPid, at: Date.parse(time) }));
}

/** The default of QUOTE_MAX_STALE_MS. */
const MAX_STALE_SECONDS = 30;
const TOPIC = "chain mainnet polygon";

test.each([
  ["is killed", "SIGKILL"],
  ["hangs", "SIGSTOP"],
] as const)("when the worker that reads %s under load, another one reads and no quote fails", async (_, signal) => {
  const service = await start(3, { REQUEST_TIMEOUT_MS: "60000" });
  const load = generateLoad(service.url);
  await expect.poll(() => load.count()).toBeGreaterThan(200);
  const [before] = listReaders(service, TOPIC);
  if (before === undefined) throw new Error("nobody reads");
  process.kill(before.pid, signal);
  await expect.poll(() => listReaders(service, TOPIC)).toHaveLength(2);
  const [, after] = listReaders(service, TOPIC);
  expect(after?.pid).not.toBe(before.pid);
  // The new reader reads, and what it reads reaches the others.
  const polygon = proxies.get("RPC_URL_POLYGON");
  const requests = polygon?.requests.length ?? 0;
  await expect.poll(() => polygon?.requests.length ?? 0).toBeGreaterThan(requests + 2);
  if (signal === "SIGSTOP") process.kill(before.pid, "SIGCONT");
  const answers = await load.stop();
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(Math.max(...answers.map(({ age }) => age))).toBeLessThanOrEqual(MAX_STALE_SECONDS);
  // What each upstream gets stays bounded: nobody has to read for itself for long.
  await expect.poll(async () => (await get(service.url, QUOTE_PATHS[0] ?? "")).age).toBeLessThanOrEqual(4);
});
