import { setTimeout as sleep } from "node:timers/promises";
import { type SentTestTransfer, sendTestTransfers } from "../../test/replicas/support/callers/transfer-sender.js";
import {
  createWatchClient,
  type WatchCaller,
  watchEvents,
  watchMessages,
} from "../../test/replicas/support/callers/watch-caller.js";
import { countFaults } from "../../test/replicas/support/callers/watch-record.js";
import { type Haproxy, startHaproxy } from "../../test/replicas/support/haproxy.js";
import { type ReplicaGroup, startReplicaGroup } from "../../test/replicas/support/replica-group.js";
import { type PacedLoadResult, runPacedH2load } from "./paced-h2load.js";
import { startReplica } from "./replica-process.js";

type Environment = Readonly<Record<string, string>>;

export interface RollingRestartOptions {
  readonly environment: Environment;
  readonly chains: Parameters<typeof sendTestTransfers>[0];
  readonly quotePaths: readonly string[];
  /** Half over Server-Sent Events, half over gRPC. */
  readonly watches: number;
  /** Half over HTTP/1.1, half over HTTP/2. */
  readonly requestsPerSecond: number;
}

export interface RollingRestartResult {
  readonly requests: Pick<PacedLoadResult, "sent" | "failed" | "slowestMs">;
  /** Answers with a status of 500 or more, by who gave them. */
  readonly errors: { readonly byReplicas: number; readonly byHaproxy: number };
  readonly exitCodes: readonly (number | null)[];
  readonly restartSeconds: readonly number[];
  readonly states: number;
  readonly resumptions: number;
  /** How many attempts to open a stream failed, by cause. */
  readonly failedAttempts: ReadonlyMap<string, number>;
  readonly lost: number;
  readonly repeated: number;
}

const TRANSFERS = 24;
const TRANSFERS_PER_WATCH = 8;
/** Watches of one address, and streams of one connection over HTTP/2. */
const WATCHES_PER_CALLER = 90;
/** Each load ends by itself after this time, and the next begins. */
const LOAD_SECONDS = 10;
const CONNECTIONS = 20;
const HAPROXY_CONNECTIONS = 8_000;
/** Only a hang takes longer. */
const PATIENCE_MS = 120_000;

/** Restarts three replicas behind HAProxy one after the other, under load, while transfers are delivered. */
export async function runRollingRestart(options: RollingRestartOptions): Promise<RollingRestartResult> {
  const { environment, chains, quotePaths, watches, requestsPerSecond } = options;
  const group = await startReplicaGroup((port) => startReplica(port, { ...environment, TRUST_PROXY: "true" }));
  let haproxy: Haproxy | undefined;
  let callers: readonly WatchCaller[] = [];
  try {
    haproxy = await startHaproxy(group.ports, HAPROXY_CONNECTIONS);
    await waitUntilUp(haproxy);
    const transfers = await sendTestTransfers(chains, TRANSFERS);
    const { url } = haproxy;
    await Promise.all(quotePaths.map((path) => fetch(url + path)));
    const opened = openWatches(url, transfers, watches);
    callers = opened.map(({ caller }) => caller);
    await waitFor(() => opened.every(({ caller, hashes }) => caller.record.states.length === hashes.length));
    const load = startLoad(
      quotePaths.map((path) => url + path),
      requestsPerSecond,
    );
    await sleep(2_000);
    const restarts = await restartAll(group, haproxy, transfers);
    const expected = opened.map(({ caller, hashes }) => {
      return { record: caller.record, states: new Map(hashes.map((hash) => [hash, ["PENDING", "BONDED"]])) };
    });
    const countAll = () => expected.map(({ record, states }) => countFaults(record, states));
    await waitFor(() => countAll().every(({ lost }) => lost === 0)).catch(() => {});
    const requests = await load.stop();
    const faults = countAll();
    const byReplicas = await haproxy.readMetric("haproxy_server_http_responses_total", 'code="5xx"');
    const errors = await haproxy.readMetric("haproxy_frontend_http_responses_total", 'proxy="service",code="5xx"');
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      ...restarts,
      requests,
      errors: { byReplicas, byHaproxy: errors - byReplicas },
      states: sum(callers.map(({ record }) => record.states.length)),
      resumptions: sum(callers.map(({ record }) => record.resumptions)),
      failedAttempts: countEach(callers.flatMap(({ record }) => record.failures)),
      lost: sum(faults.map(({ lost }) => lost)),
      repeated: sum(faults.map(({ repeated }) => repeated)),
    };
  } finally {
    await Promise.all(callers.map((caller) => caller.close()));
    await haproxy?.close();
    group.kill();
  }
}

function openWatches(url: string, transfers: readonly SentTestTransfer[], count: number) {
  return Array.from({ length: count / 2 }, (_, index) => {
    const group = Math.floor(index / WATCHES_PER_CALLER);
    const hashes = Array.from({ length: TRANSFERS_PER_WATCH }, (__, offset) => {
      return transfers[(index + offset * 3) % transfers.length]?.transactionHash ?? "";
    });
    clients[group] ??= createWatchClient(url, `127.0.2.${group + 1}`);
    return [
      { hashes, caller: watchEvents(url, { hashes, localAddress: `127.0.1.${group + 1}` }) },
      { hashes, caller: watchMessages(clients[group], { hashes }) },
    ];
  }).flat();
}

const clients: ReturnType<typeof createWatchClient>[] = [];

/** Ends and starts each replica in turn; transfers are delivered before, while it is away, and after it. */
async function restartAll(group: ReplicaGroup, haproxy: Haproxy, transfers: readonly SentTestTransfer[]) {
  const exitCodes: (number | null)[] = [];
  const restartSeconds: number[] = [];
  const deliveries = transfers.values();
  const deliver = async (): Promise<void> => {
    for (let count = 0; count < TRANSFERS / 9; count++) await deliveries.next().value?.deliver();
  };
  for (const index of group.ports.keys()) {
    await deliver();
    const began = performance.now();
    const ended = group.end(index, "SIGTERM");
    await deliver();
    exitCodes.push(await ended);
    await group.start(index);
    await waitUntilUp(haproxy);
    restartSeconds.push((performance.now() - began) / 1_000);
    await deliver();
  }
  return { exitCodes, restartSeconds };
}

/** Sends requests until it is stopped, over both versions of HTTP. */
function startLoad(urls: readonly string[], perSecond: number) {
  let isStopped = false;
  const total = { sent: 0, failed: 0, slowestMs: 0 };
  const half = { urls, connections: CONNECTIONS, perSecond: perSecond / 2, seconds: LOAD_SECONDS };
  const runs = (["h1", "h2"] as const).map(async (protocol) => {
    while (!isStopped) {
      const { sent, failed, slowestMs } = await runPacedH2load({ ...half, protocol });
      total.sent += sent;
      total.failed += failed;
      total.slowestMs = Math.max(total.slowestMs, slowestMs);
    }
  });
  return {
    async stop() {
      isStopped = true;
      await Promise.all(runs);
      return total;
    },
  };
}

function countEach(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

async function waitUntilUp(haproxy: Haproxy): Promise<void> {
  await waitFor(async () => (await haproxy.readUp()).every((isUp) => isUp));
}

async function waitFor(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const began = performance.now(); !(await isTrue()); await sleep(100)) {
    if (performance.now() - began > PATIENCE_MS) throw new Error("what should happen has not happened");
  }
}
