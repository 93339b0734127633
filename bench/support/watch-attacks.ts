import { createServer } from "node:http";
import { setPriority } from "node:os";
import { type ChainBehaviour, startAttackedChains } from "../../test/support/attacks/attacked-chains.js";
import { startAttackedService } from "../../test/support/attacks/attacked-service.js";
import { startPoliteClient } from "../../test/support/attacks/polite-client.js";
import { QUOTE_PATH, sendGet } from "../../test/support/attacks/send-get.js";
import { fetchJson } from "./attackers.js";
import { stormWatches, type WatchStormOptions, watchBehind } from "./attacks/watch-storms.js";
import { listenOnFreePort } from "./recorded-server.js";
import { startServer } from "./server-process.js";

// Attacks by watches of transfers, with an honest caller beside them.

/** As a real attacker, this one does not delay those who measure. */
const ATTACKER_PRIORITY = 10;
const POLITE_PER_SECOND = 50;
const WARM_UP_MS = 2_000;
/** How long requests are counted after the last watch is closed. */
const AFTER_MS = 15_000;
const MAX_REQUESTS_AFTER = 300;
const MAX_P99_MS = 250;
const MAX_RESIDENT_MB = 256;
const UNKNOWN_HASHES = 2_940;
const MAX_STATE_MS = 2_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Opens and resets watches in a process of its own. The URL answers when the last is closed. */
export async function serveWatchStorm(options: WatchStormOptions): Promise<string> {
  setPriority(ATTACKER_PRIORITY);
  const storm = stormWatches(options);
  return listenOnFreePort(createServer((_request, response) => void storm.then(() => response.end())));
}

/** Latencies of an honest caller, in milliseconds. */
interface HonestLatencies {
  readonly median: number;
  readonly p99: number;
}

/**
 * Sends requests as an honest caller in a process of its own: that of the bench answers for the chains. The URL ends this and
 * answers with the latencies.
 * @param path of each request; to one that ends in "=", a number is appended
 */
export async function serveHonestCaller({ port, path }: { port: number; path: string }): Promise<string> {
  const polite = startPoliteClient({
    port,
    path: (index) => (path.endsWith("=") ? `${path}${25_000_001 + index}` : path),
    perSecond: POLITE_PER_SECOND,
  });
  const finish = async (): Promise<HonestLatencies> => {
    await polite.stop();
    return { median: polite.latencies.quantile(0.5), p99: polite.latencies.quantile(0.99) };
  };
  return listenOnFreePort(
    createServer((_request, response) => void finish().then((latencies) => response.end(JSON.stringify(latencies)))),
  );
}

/**
 * Measures what is left of watches that were opened and reset.
 * @param main path of the command to attack
 * @param behaviour of the chains from the beginning of the attack on
 */
export async function measureWatchStorm(
  main: string,
  {
    title,
    behaviour,
    ...storm
  }: Omit<WatchStormOptions, "port"> & {
    readonly title: string;
    readonly behaviour: Partial<ChainBehaviour>;
  },
) {
  const chains = await startAttackedChains();
  const environment = { ...chains.environment, TRUST_PROXY: String(storm.hasCallerEach === true) };
  const service = await startAttackedService(main, environment);
  try {
    await sendGet(service.port, `${QUOTE_PATH}25000000`);
    // A quote would wait for the endpoints, whoever attacks.
    const path = behaviour.isHanging === true ? "/livez" : QUOTE_PATH;
    const honest = await startServer("honestCaller", { port: service.port, path });
    await sleep(WARM_UP_MS);
    Object.assign(chains.behaviour, behaviour);
    const attacker = await startServer("watchStorm", { ...storm, port: service.port });
    await sendGet(Number(new URL(attacker.url).port), "/");
    await attacker.stop();
    chains.reset();
    await sleep(AFTER_MS);
    const after = chains.callCount("eth_getTransactionReceipt");
    const resident = await service.residentMb();
    const { median, p99 } = (await fetchJson(honest)) as HonestLatencies;
    await honest.stop();
    return {
      title,
      result:
        `${after} receipts asked for in ${AFTER_MS / 1_000} s after the last watch; ${path.split("?")[0]} median ${median.toFixed(0)}, ` +
        `p99 ${p99.toFixed(0)} ms; ${resident.toFixed(0)} MB`,
      goal: "<= 300, p99 <= 250 ms, < 256 MB",
      isReached: after <= MAX_REQUESTS_AFTER && p99 <= MAX_P99_MS && resident < MAX_RESIDENT_MB,
    };
  } finally {
    await service.stop();
    await chains.close();
  }
}

/** Measures how long a caller waits for a state that an attacker watches behind many unknown hashes. */
export async function measureSharedFollower(main: string) {
  const chains = await startAttackedChains({ latencyMs: 150 });
  const service = await startAttackedService(main, chains.environment);
  try {
    const tookMs = await watchBehind(service.port, UNKNOWN_HASHES);
    return {
      title: `one caller watches ${UNKNOWN_HASHES} unknown hashes and then T, another one T; endpoints at 150 ms`,
      result: `T's state after ${tookMs.toFixed(0)} ms`,
      goal: "< 2 s",
      isReached: tookMs < MAX_STATE_MS,
    };
  } finally {
    await service.stop();
    await chains.close();
  }
}
