import { type AttackedService, startAttackedService } from "../../test/support/attacks/attacked-service.js";
import { hostileAddress } from "../../test/support/attacks/caller-addresses.js";
import { startPoliteClient } from "../../test/support/attacks/polite-client.js";
import { QUOTE_PATH, sendGet } from "../../test/support/attacks/send-get.js";
import { fetchEnvironment } from "./attackers.js";
import { unknownHash } from "./attacks/attacked-transfers.js";
import { startServer } from "./server-process.js";

// RPC endpoints that answer with lists inside lists without end, which take a hundred times as long to parse as other text.

const OPERATOR_BYTES = 6_000_000;
/** Limit of one response of a caller's own endpoint. */
const CALLER_BYTES = 1024 * 1024;
const SECONDS = 11;
const WARM_UP_MS = 2_000;
/** Ten look-ups a second. */
const LOOKUP_PAUSE_MS = 100;
const HONEST_PER_SECOND = 50;
const MAX_P99_MS = 250;
const MAX_RESIDENT_MB = 256;
const MAX_CPU_SECONDS = 1;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks up another unknown transaction ten times a second, and returns the CPU time of the service meanwhile, in seconds. */
async function lookUp(service: AttackedService, query: string): Promise<number> {
  const cpuBefore = service.cpuSeconds();
  const lookups: Promise<unknown>[] = [];
  for (const began = performance.now(); performance.now() - began < SECONDS * 1_000; await sleep(LOOKUP_PAUSE_MS)) {
    const path = `/v1/transfer-status?transactionHash=${unknownHash(100 + lookups.length)}${query}`;
    lookups.push(sendGet(service.port, path, hostileAddress(0)));
  }
  const cpu = service.cpuSeconds() - cpuBefore;
  await Promise.all(lookups);
  return cpu;
}

/** Measures what is left of the service while the operator's own endpoints answer so. */
export async function measureNestedOperator(main: string) {
  const chains = await startServer("chains", { nestedBytes: OPERATOR_BYTES });
  const service = await startAttackedService(main, await fetchEnvironment(chains));
  try {
    const probe = startPoliteClient({ port: service.port, path: () => "/livez", perSecond: HONEST_PER_SECOND });
    await lookUp(service, "");
    await probe.stop();
    const [slowest, peak] = [probe.latencies.quantile(1), await service.peakResidentMb()];
    return {
      title: "the operator's endpoints answer 6 MB of nested lists: /livez",
      result: `up to ${slowest.toFixed(0)} ms, ${probe.failures.size} failures; ${peak.toFixed(0)} MB`,
      goal: "< 250 ms, < 256 MB",
      isReached: probe.failures.size === 0 && slowest < MAX_P99_MS && peak < MAX_RESIDENT_MB,
    };
  } finally {
    await Promise.all([service.stop(), chains.stop()]);
  }
}

/** Measures what look-ups over a caller's own endpoints take, beyond an honest caller's quotes alone. */
export async function measureNestedCaller(main: string) {
  const [chains, hostile] = await Promise.all([
    startServer("chains", {}),
    startServer("chains", { nestedBytes: CALLER_BYTES }),
  ]);
  const service = await startAttackedService(main, await fetchEnvironment(chains));
  try {
    await sendGet(service.port, `${QUOTE_PATH}25000000`);
    const endpoints = Object.entries(await fetchEnvironment(hostile)).flatMap(([name, url]) => {
      const slug = /^RPC_URL_(\w+)$/.exec(name)?.[1]?.toLowerCase();
      return slug === undefined ? [] : [`&rpcUrl[${slug}]=${encodeURIComponent(url)}`];
    });
    const path = (index: number): string => `${QUOTE_PATH}${26_000_000 + index}`;
    const honest = startPoliteClient({ port: service.port, path, perSecond: HONEST_PER_SECOND });
    await sleep(WARM_UP_MS);
    const cpuBefore = service.cpuSeconds();
    await sleep(SECONDS * 1_000);
    const cpuAlone = service.cpuSeconds() - cpuBefore;
    const cpu = (await lookUp(service, endpoints.join(""))) - cpuAlone;
    await honest.stop();
    const p99 = honest.latencies.quantile(0.99);
    return {
      title: "ten look-ups a second over a caller's own nine endpoints, which answer 1 MiB of nested lists",
      result: `${cpu.toFixed(1)} s of CPU in ${SECONDS} s, beside ${cpuAlone.toFixed(1)} s for quotes; their p99 ${p99.toFixed(0)} ms, ${honest.failures.size} failures`,
      goal: "< 1 s of CPU, p99 <= 250 ms",
      isReached: cpu < MAX_CPU_SECONDS && p99 <= MAX_P99_MS && honest.failures.size === 0,
    };
  } finally {
    await Promise.all([service.stop(), chains.stop(), hostile.stop()]);
  }
}
