import { fileURLToPath } from "node:url";
import {
  type AttackedChains,
  type ChainBehaviour,
  startAttackedChains,
} from "../test/support/attacks/attacked-chains.js";
import { type AttackedService, startAttackedService } from "../test/support/attacks/attacked-service.js";
import { hostileAddress, POLITE_ADDRESS } from "../test/support/attacks/caller-addresses.js";
import { createLatencySamples } from "../test/support/attacks/latency-samples.js";
import type { MemoryAttack, MemoryAttackOptions, MemoryAttackTarget } from "../test/support/attacks/memory-attacks.js";
import { startPoliteClient } from "../test/support/attacks/polite-client.js";
import { QUOTE_PATH, sendGet } from "../test/support/attacks/send-get.js";
import {
  fetchEnvironment,
  readAttacker,
  serveAttacker,
  serveChains,
  startHostileLookups,
} from "./support/attackers.js";
import { addPendingTransfer } from "./support/attacks/attacked-transfers.js";
import type { BatchAttack } from "./support/attacks/batch-attacks.js";
import {
  pingWithoutReading,
  readHttp1Slowly,
  readHttp2Slowly,
  type SlowReader,
} from "./support/attacks/slow-readers.js";
import {
  askSlowChains,
  lookUpForgedReceipt,
  lookUpUnknownHash,
  lookUpUnknownId,
  nameOneHost,
} from "./support/attacks/upstream-attacks.js";
import { measureNestedCaller, measureNestedOperator } from "./support/nested-responses.js";
import { measureResetBurst, serveResetBurst } from "./support/reset-burst.js";
import { runBench, startServer } from "./support/server-process.js";
import {
  measureSharedFollower,
  measureWatchStorm,
  serveHonestCaller,
  serveWatchStorm,
} from "./support/watch-attacks.js";

// Attacks the service and measures what they take from it. ATTACKS names some of the scenarios, ATTACKED_MAIN the main.js of
// another build. Attackers have processes of their own with low priority; everything is on 127.0.0.1 and ends by itself.

const main = fileURLToPath(new URL("../src/main.js", import.meta.url));
const HOLD_SECONDS = 12;
const ALL_AT_ONCE_SECONDS = 30;
const SAMPLE_INTERVAL_MS = 100;
const PROBE_INTERVAL_MS = 100;
const MAX_SLOW_SECONDS = 130;
const MAX_RESIDENT_MB = 256;
const FORGED_COMPLETIONS = 1_200;
const POLITE_PER_SECOND = 100;
const HONEST_PER_SECOND = 50;
const BATCH_PAUSE_MS = 500;
const MAX_HONEST_MS = 250;
const MAX_BATCH_MS = 500;
const MAX_CPU_SHARE = 0.4;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Row {
  readonly title: string;
  readonly result: string;
  readonly goal: string;
  readonly isReached: boolean;
}

async function withService<T>(
  options: Partial<ChainBehaviour>,
  run: (service: AttackedService, chains: AttackedChains) => Promise<T>,
): Promise<T> {
  const chains = await startAttackedChains(options);
  const service = await startAttackedService(main, chains.environment);
  try {
    return await run(service, chains);
  } finally {
    await service.stop();
    await chains.close();
  }
}

const getTarget = (service: AttackedService): MemoryAttackTarget => ({
  port: service.port,
  metricsPort: service.metricsPort(),
});

/** Measures the largest resident memory until a time, including child processes. */
async function watchMemory(service: AttackedService, seconds: number): Promise<number> {
  let peak = 0;
  for (const began = performance.now(); performance.now() - began < seconds * 1_000; await sleep(SAMPLE_INTERVAL_MS))
    peak = Math.max(peak, await service.residentMb());
  return Math.max(peak, await service.peakResidentMb());
}

const measureMemory =
  (title: string, attack: MemoryAttack, options: MemoryAttackOptions = {}) =>
  (): Promise<Row> =>
    withService({}, async (service) => {
      await sendGet(service.port, `${QUOTE_PATH}25000000`);
      const before = await service.residentMb();
      const attacker = await startServer("attacker", { target: getTarget(service), attacks: [attack], options });
      const peak = await watchMemory(service, HOLD_SECONDS);
      const { connections, requests } = await readAttacker(attacker);
      await attacker.stop();
      const held = `${connections} connections and ${requests} requests open at the end`;
      const result = `${before.toFixed(0)} -> ${peak.toFixed(0)} MB; ${held}`;
      return { title, result, goal: "< 256 MB", isReached: service.isRunning() && peak < MAX_RESIDENT_MB };
    });

const measureLiveness = (getPort: (service: AttackedService) => number, name: string) => (): Promise<Row> =>
  withService({}, async (service) => {
    const latencies = createLatencySamples();
    const attacks: MemoryAttack[] = ["pipelined-many"];
    const options: MemoryAttackOptions = { isPersistent: true };
    const attacker = await startServer("attacker", { target: getTarget(service), attacks, options });
    const pending: Promise<void>[] = [];
    let failures = 0;
    for (const began = performance.now(); performance.now() - began < HOLD_SECONDS * 1_000; ) {
      const probe = sendGet(getPort(service), "/livez", POLITE_ADDRESS).then(({ status, tookMs }) => {
        if (status === 200) latencies.add(tookMs);
        else failures += 1;
      });
      pending.push(probe);
      await sleep(PROBE_INTERVAL_MS);
    }
    const peak = await service.peakResidentMb();
    await attacker.stop();
    await Promise.all(pending);
    const [median, max] = [latencies.quantile(0.5), latencies.quantile(1)].map((ms) => `${ms.toFixed(0)} ms`);
    return {
      title: `400 x 249 pipelined requests: /livez on the ${name} port`,
      result: `median ${median}, max ${max}, ${failures} failures, ${peak.toFixed(0)} MB`,
      goal: "< 1 s",
      isReached: failures === 0 && latencies.quantile(1) < 1_000,
    };
  });

const SLOW_READERS: readonly (readonly [string, SlowReader])[] = [
  ["HTTP/1.1, an answer read at 1 byte/s", readHttp1Slowly],
  ["HTTP/2, an answer read at 1 byte/s", readHttp2Slowly],
  ["HTTP/2, a stream with window 0, and PINGs", pingWithoutReading],
];

const measureSlowReaders = (): Promise<Row[]> =>
  withService({}, (service) =>
    Promise.all(
      SLOW_READERS.map(async ([title, read]): Promise<Row> => {
        const seconds = await read(service.port, MAX_SLOW_SECONDS);
        const isClosed = seconds < MAX_SLOW_SECONDS;
        const result = isClosed ? `closed after ${seconds.toFixed(0)} s` : `open after ${MAX_SLOW_SECONDS} s`;
        return { title, result, goal: "closed after 60 s", isReached: seconds < 75 };
      }),
    ),
  );

const measureUnknownId = (latencyMs: number) => (): Promise<Row> =>
  withService({ maxLogBlocks: 10_000, latencyMs }, async (service, chains) => {
    const costs = await lookUpUnknownId(service.port, chains);
    const [first, again] = costs.map(({ requests }) => requests) as [number, number];
    return {
      title: `one unknown transferId, endpoints search 10,000 blocks at a time, in ${latencyMs} ms; again`,
      result: costs.map(({ requests, status, reason }) => `${requests} requests (${status} ${reason})`).join(", "),
      goal: "<= 500; <= 20",
      isReached: first <= 500 && again <= 20,
    };
  });

const measureUnknownHash = (): Promise<Row> =>
  withService({}, async (service, chains) => {
    const costs = await lookUpUnknownHash(service.port, chains);
    const requests = costs.map((cost) => cost.requests);
    return {
      title: "the same unknown hash three times",
      result: `${requests.join(" + ")} requests (${costs[0]?.status})`,
      goal: "9 + 0 + 0",
      isReached: requests.join() === "9,0,0",
    };
  });

const measureForgedReceipt = (): Promise<Row> =>
  withService({ latencyMs: 50 }, async (service, operator) => {
    const attacker = await startAttackedChains();
    const cost = await lookUpForgedReceipt(service.port, operator, attacker, FORGED_COMPLETIONS);
    await attacker.close();
    const failed = cost.otherStatuses.filter((status) => status !== 200).length;
    const slowest = cost.others.quantile(1);
    return {
      title: "a receipt with 1,200 forged completions from the caller's endpoint",
      result: `${cost.logSearches} eth_getLogs (${cost.status} ${cost.reason}); other look-ups up to ${slowest.toFixed(0)} ms, ${failed} failed`,
      goal: "<= 60, nobody else waits",
      isReached: cost.logSearches <= 60 && failed === 0 && slowest < 1_000,
    };
  });

const measureOneHost = (title: string, behaviour: Partial<ChainBehaviour>) => (): Promise<Row> =>
  withService({}, async (service) => {
    const host = await startAttackedChains(behaviour);
    const { requests, connections, result } = await nameOneHost(service.port, host);
    await host.close();
    return {
      title: `rpcUrl names one host for all nine chains, which ${title}`,
      result: `${requests} requests, ${connections} connections (${result.status})`,
      goal: "one attempt each",
      isReached: requests <= 9 && connections <= 9,
    };
  });

const measureSlowChains = (latencyMs: number) => (): Promise<Row> =>
  withService({}, async (service, chains) => {
    const hash = addPendingTransfer(chains);
    chains.behaviour.latencyMs = latencyMs;
    const { quote, status } = await askSlowChains(service.port, hash);
    const describe = ({ status: code, tookMs }: typeof quote): string =>
      `${code} after ${(tookMs / 1_000).toFixed(1)} s`;
    return {
      title: `the only endpoint of each chain answers after ${latencyMs / 1_000} s: quote, status`,
      result: `${describe(quote)}, ${describe(status)}`,
      goal: latencyMs > 2_000 ? "200 where one round is enough" : "200, 200",
      isReached: quote.status === 200 && (latencyMs > 2_000 || status.status === 200),
    };
  });

/**
 * All attacks on memory at once, and callers of unknown transfers with endpoints of their own, beside a polite client.
 * @param isPersistent whether attackers open again at once what the service closes or completes
 */
const measureAllAtOnce = (isPersistent: boolean) => async (): Promise<Row> => {
  const [chains, hostile] = await Promise.all([startServer("chains", { latencyMs: 20 }), startServer("chains", {})]);
  const environment = await fetchEnvironment(chains);
  const service = await startAttackedService(main, environment);
  try {
    await sendGet(service.port, `${QUOTE_PATH}25000000`);
    const baseline = startPoliteClient({
      port: service.port,
      path: (index) => `${QUOTE_PATH}${25_000_000 + index}`,
      perSecond: POLITE_PER_SECOND,
    });
    await sleep(3_000);
    await baseline.stop();
    const attacks: MemoryAttack[] = [
      "http2-unread",
      "watches",
      "pipelined-routes",
      "pipelined-metrics",
      "pipelined-many",
    ];
    const options: MemoryAttackOptions = { isPersistent, callers: 20 };
    const attacker = await startServer("attacker", { target: getTarget(service), attacks, options });
    const polite = startPoliteClient({
      port: service.port,
      path: (index) => `${QUOTE_PATH}${26_000_000 + index}`,
      perSecond: POLITE_PER_SECOND,
    });
    const lookups = startHostileLookups(service.port, await fetchEnvironment(hostile));
    const peak = await watchMemory(service, ALL_AT_ONCE_SECONDS);
    const state = await readAttacker(attacker);
    await Promise.all([polite.stop(), lookups.stop(), attacker.stop()]);
    const failures = [...polite.failures].map(([kind, count]) => `${count} ${kind}`);
    const p99 = polite.latencies.quantile(0.99);
    const times = [0.5, 0.99, 1].map((share) => polite.latencies.quantile(share).toFixed(0));
    return {
      title: `all at once${isPersistent ? ", again and again" : ""}, with quotes at hand`,
      result:
        `${peak.toFixed(0)} MB; ${polite.latencies.count} quotes, median ${times[0]}, p99 ${times[1]}, max ${times[2]} ms ` +
        `(before the attack p99 ${baseline.latencies.quantile(0.99).toFixed(0)} ms); failed: ${failures.join(", ") || "none"}; ` +
        `attackers sent ${state.sent} requests, ${lookups.count()} look-ups`,
      goal: "< 256 MB, p99 < 250 ms",
      isReached: service.isRunning() && peak < MAX_RESIDENT_MB && p99 < 250 && failures.length === 0,
    };
  } finally {
    await Promise.all([service.stop(), chains.stop(), hostile.stop()]);
  }
};

/** 100 quotes, as somebody else's batch. */
const BATCH_PATH = `/v1/quotes?token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5&amount=${Array.from(
  { length: 100 },
  (_, index) => 30_000_000 + index,
).join("&amount=")}`;

/** An attack by batches beside an honest caller of quotes, and one of batches. */
const measureBatches =
  (title: string, batches: BatchAttack, { callers = 1, maxCpuShare = 1 } = {}) =>
  async (): Promise<Row> => {
    const chains = await startServer("chains", {});
    const service = await startAttackedService(main, await fetchEnvironment(chains));
    try {
      await sendGet(service.port, `${QUOTE_PATH}25000000`);
      const attacker = await startServer("attacker", {
        target: getTarget(service),
        attacks: [],
        options: { callers },
        batches,
      });
      const [began, cpuBefore] = [performance.now(), service.cpuSeconds()];
      const path = (index: number): string => `${QUOTE_PATH}${26_000_000 + index}`;
      const honest = startPoliteClient({ port: service.port, path, perSecond: HONEST_PER_SECOND });
      const others = createLatencySamples();
      const failed: number[] = [];
      while (performance.now() - began < HOLD_SECONDS * 1_000) {
        const { status, tookMs } = await sendGet(service.port, BATCH_PATH, hostileAddress(1));
        others.add(tookMs);
        if (status !== 200) failed.push(status);
        await sleep(BATCH_PAUSE_MS);
      }
      const cpuShare = (service.cpuSeconds() - cpuBefore) / ((performance.now() - began) / 1_000);
      const { sent } = await readAttacker(attacker);
      await attacker.stop();
      await honest.stop();
      const failures = [...honest.failures].map(([kind, count]) => `${count} ${kind}`).concat(failed.map(String));
      const [p50, p99] = [0.5, 0.99].map((share) => honest.latencies.quantile(share)) as [number, number];
      const slowest = others.quantile(1);
      return {
        title,
        result:
          `${sent} requests, ${(cpuShare * 100).toFixed(0)} % of a core; quotes p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)} ms; ` +
          `another's batches up to ${slowest.toFixed(0)} ms; failed: ${failures.join(", ") || "none"}`,
        goal: `p99 <= ${MAX_HONEST_MS} ms, batches <= ${MAX_BATCH_MS} ms${maxCpuShare < 1 ? ", < 40 % of a core" : ""}`,
        isReached:
          p99 <= MAX_HONEST_MS &&
          slowest <= MAX_BATCH_MS &&
          (maxCpuShare === 1 || cpuShare < maxCpuShare) &&
          failures.length === 0,
      };
    } finally {
      await Promise.all([service.stop(), chains.stop()]);
    }
  };

const SCENARIOS: Readonly<Record<string, () => Promise<Row | Row[]>>> = {
  "http2-unread": measureMemory(
    "HTTP/2, 100 connections x 250 streams of /v1/available-routes, window 0, never read",
    "http2-unread",
  ),
  "http2-unread-callers": measureMemory("the same from 100 callers, again and again", "http2-unread", {
    callers: 100,
    isPersistent: true,
  }),
  watches: measureMemory("40 connections x 250 grpc.health.v1.Health/Watch", "watches"),
  "watches-callers": measureMemory("the same from 40 callers, again and again", "watches", {
    callers: 40,
    isPersistent: true,
  }),
  "pipelined-metrics": measureMemory("HTTP/1.1, 50 x 249 pipelined /metrics, never read", "pipelined-metrics"),
  "pipelined-routes": measureMemory("the same with /v1/available-routes", "pipelined-routes"),
  "grpc-unread": measureMemory("100 x 250 gRPC ListAvailableRoutes, window 0", "grpc-unread"),
  "reflection-unread": measureMemory("10 x 100 reflection streams of 480 requests, window 0", "reflection-unread"),
  "unfinished-bodies": measureMemory("100 x 250 request bodies that stop after 16 KiB", "unfinished-bodies"),
  "idle-http1": measureMemory("4,000 idle HTTP/1.1 connections", "idle-http1"),
  "idle-http2": measureMemory("4,000 idle HTTP/2 connections", "idle-http2"),
  livez: measureLiveness((service) => service.port, "public"),
  "livez-metrics": measureLiveness((service) => service.metricsPort(), "metrics"),
  "slow-readers": measureSlowReaders,
  "unknown-id": measureUnknownId(0),
  "unknown-id-slow": measureUnknownId(300),
  "unknown-hash": measureUnknownHash,
  "forged-receipt": measureForgedReceipt,
  "one-host-errors": measureOneHost("answers 500", { errorStatus: 500 }),
  "one-host-hangs": measureOneHost("hangs", { isHanging: true }),
  "slow-2s": measureSlowChains(2_000),
  "slow-3.5s": measureSlowChains(3_500),
  "gzip-protobuf": measureBatches("100 batches of 64 KB in 100 bytes a second, Connect and Protobuf", "gzip-protobuf", {
    maxCpuShare: MAX_CPU_SHARE,
  }),
  "gzip-json": measureBatches("the same as JSON", "gzip-json", { maxCpuShare: MAX_CPU_SHARE }),
  "gzip-grpc": measureBatches("the same over gRPC", "gzip-grpc", { maxCpuShare: MAX_CPU_SHARE }),
  "gzip-grpc-web": measureBatches("the same over gRPC-Web", "gzip-grpc-web", { maxCpuShare: MAX_CPU_SHARE }),
  "gzip-streams": measureBatches("240 gRPC streams of them at once, every two seconds", "gzip-streams"),
  batches: measureBatches("100 connections of batches of 100 quotes that search for their amount", "batches"),
  "batches-callers": measureBatches("the same from 100 callers", "batches", { callers: 100 }),
  "watches-reset": () =>
    measureWatchStorm(main, {
      title: "20,000 watches of unknown hashes opened and reset at once by one caller, endpoints at 50 ms",
      watches: 20_000,
      behaviour: { latencyMs: 50 },
    }),
  "watches-reset-callers": () =>
    measureWatchStorm(main, {
      title: "the same, open for 3 s, with a caller each",
      watches: 20_000,
      hasCallerEach: true,
      holdMs: 3_000,
      behaviour: { latencyMs: 50 },
    }),
  "watches-reset-hanging": () =>
    measureWatchStorm(main, {
      title: "the same with 40,000 watches and endpoints that hang",
      watches: 40_000,
      hasCallerEach: true,
      holdMs: 3_000,
      behaviour: { isHanging: true },
    }),
  "reset-burst": () => measureResetBurst(main),
  "nested-operator": () => measureNestedOperator(main),
  "nested-caller": () => measureNestedCaller(main),
  "shared-follower": () => measureSharedFollower(main),
  all: measureAllAtOnce(false),
  "all-persistent": measureAllAtOnce(true),
};

async function measure(): Promise<void> {
  const names = process.env.ATTACKS?.split(",") ?? Object.keys(SCENARIOS);
  const rows: Row[] = [];
  for (const name of names) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) throw new Error(`no scenario ${name}: one of ${Object.keys(SCENARIOS).join(", ")}`);
    for (const row of [await scenario()].flat()) {
      rows.push(row);
      console.log(`${name.padEnd(22)} ${row.isReached ? "ok  " : "MISS"} ${row.result}`);
    }
  }
  console.log("\n| attack or condition | result | goal | |\n|---|---|---|---|");
  for (const { title, result, goal, isReached } of rows)
    console.log(`| ${title} | ${result} | ${goal} | ${isReached ? "reached" : "missed"} |`);
}

await runBench(measure, {
  attacker: serveAttacker,
  chains: serveChains,
  watchStorm: serveWatchStorm,
  honestCaller: serveHonestCaller,
  resetBurst: serveResetBurst,
});
