import { createServer } from "node:http";
import { setPriority } from "node:os";
import { startAttackedService } from "../../test/support/attacks/attacked-service.js";
import { startPoliteClient } from "../../test/support/attacks/polite-client.js";
import { QUOTE_PATH, sendGet } from "../../test/support/attacks/send-get.js";
import { fetchEnvironment } from "./attackers.js";
import { burstResets, type ResetBurstOptions } from "./attacks/reset-burst.js";
import { listenOnFreePort } from "./recorded-server.js";
import { startServer } from "./server-process.js";

// Connections that open and reset a thousand streams each, all at the same time.

/** As a real attacker, this one does not delay those who measure. */
const ATTACKER_PRIORITY = 10;
const BURST = { connections: 300, requests: 1_000 };
const HONEST_PER_SECOND = 50;
const WARM_UP_MS = 2_000;
const MAX_P99_MS = 250;
const MAX_RESIDENT_MB = 256;

/** Sends the burst in a process of its own. The URL answers when the last connection is closed. */
export async function serveResetBurst(options: ResetBurstOptions): Promise<string> {
  setPriority(ATTACKER_PRIORITY);
  const burst = burstResets(options);
  return listenOnFreePort(createServer((_request, response) => void burst.then(() => response.end())));
}

/** Measures what the burst takes until all of its connections are closed. */
export async function measureResetBurst(main: string) {
  const chains = await startServer("chains", {});
  const service = await startAttackedService(main, await fetchEnvironment(chains));
  try {
    const path = (index: number): string => `${QUOTE_PATH}${25_000_000 + index}`;
    await sendGet(service.port, path(0));
    const honest = startPoliteClient({ port: service.port, path, perSecond: HONEST_PER_SECOND });
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    const [began, cpuBefore] = [performance.now(), service.cpuSeconds()];
    const attacker = await startServer("resetBurst", { ...BURST, port: service.port });
    await sendGet(Number(new URL(attacker.url).port), "/");
    const seconds = (performance.now() - began) / 1_000;
    const cpu = service.cpuSeconds() - cpuBefore;
    await Promise.all([attacker.stop(), honest.stop()]);
    const [p99, slowest] = [honest.latencies.quantile(0.99), honest.latencies.quantile(1)];
    const peak = await service.peakResidentMb();
    return {
      title: `${BURST.connections} connections that open and reset ${BURST.requests} streams each at once`,
      result:
        `${cpu.toFixed(1)} s of CPU in ${seconds.toFixed(1)} s; quotes p99 ${p99.toFixed(0)}, max ${slowest.toFixed(0)} ms, ` +
        `${honest.failures.size} failures; ${peak.toFixed(0)} MB`,
      goal: "p99 <= 250 ms, < 256 MB",
      isReached: p99 <= MAX_P99_MS && honest.failures.size === 0 && peak < MAX_RESIDENT_MB,
    };
  } finally {
    await Promise.all([service.stop(), chains.stop()]);
  }
}
