import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type AttackedChains, startAttackedChains } from "../../support/attacks/attacked-chains.js";
import { type AttackedService, startAttackedService } from "../../support/attacks/attacked-service.js";
import { POLITE_ADDRESS } from "../../support/attacks/caller-addresses.js";
import type { Flood } from "../../support/attacks/http2-flood.js";
import {
  type MemoryAttack,
  type MemoryAttackOptions,
  startMemoryAttack,
} from "../../support/attacks/memory-attacks.js";
import { startPoliteClient } from "../../support/attacks/polite-client.js";
import { QUOTE_PATH, sendGet } from "../../support/attacks/send-get.js";
import { isFullEffort, takeCases } from "../../support/effort.js";
import { buildService } from "../../support/service/build-service.js";

const MAX_RESIDENT_MB = 256;
/** An attack that adds less than this in so long has taken what it can. */
const SETTLE_MS = 1_500;
const SETTLED_GROWTH_MB = 2;
const MAX_ATTACK_MS = isFullEffort ? 30_000 : 8_000;
/** Factor of the attackers' connections: each attack exceeds the bound where it has no limit. */
const SCALES = {
  "http2-unread": isFullEffort ? 1 : 0.4,
  watches: isFullEffort ? 1 : 0.6,
  "pipelined-metrics": 1,
  "pipelined-many": isFullEffort ? 1 : 0.25,
} satisfies Partial<Record<MemoryAttack, number>>;
/** The same for all attacks at once. In full size only `npm run bench:attacks` runs them. */
const TOGETHER_SCALES = { "http2-unread": 0.2, watches: 0.3, "pipelined-metrics": 0.5, "pipelined-many": 0.12 };
type Attack = keyof typeof SCALES;
const ATTACKS = Object.keys(SCALES) as Attack[];
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let main: string;
let chains: AttackedChains;
let service: AttackedService;
let floods: Flood[];

beforeAll(async () => {
  main = await buildService();
});
beforeEach(async () => {
  floods = [];
  chains = await startAttackedChains();
  service = await startAttackedService(main, chains.environment);
});
afterEach(async () => {
  for (const flood of floods) flood.close();
  await service.stop();
  await chains.close();
});

function attack(name: Attack, options: MemoryAttackOptions = {}): void {
  const target = { port: service.port, metricsPort: service.metricsPort() };
  floods.push(startMemoryAttack(name, target, { scale: SCALES[name], ...options }));
}

/** Returns the largest resident memory once it no longer grows, in MB. */
async function measurePeak(): Promise<number> {
  let [peak, settledMb, grewAt] = [0, 0, performance.now()];
  const began = grewAt;
  while (performance.now() - grewAt < SETTLE_MS && performance.now() - began < MAX_ATTACK_MS) {
    peak = Math.max(peak, await service.residentMb(), await service.peakResidentMb());
    if (peak > settledMb + SETTLED_GROWTH_MB) [settledMb, grewAt] = [peak, performance.now()];
    await sleep(50);
  }
  return peak;
}

// The kernel of Linux tells the memory of a process.
describe.runIf(process.platform === "linux")("resident memory", () => {
  test.each(ATTACKS)("stays below 256 MB while one caller attacks: %s", async (name) => {
    attack(name);
    expect(await measurePeak()).toBeLessThan(MAX_RESIDENT_MB);
    expect((await sendGet(service.port, "/livez", POLITE_ADDRESS)).status).toBe(200);
  });

  // The heap is mostly garbage then: refused requests and closed connections.
  test.each(takeCases(["http2-unread", "watches"] as const))(
    "stays below 256 MB while forty callers open connections again and again: %s",
    async (name) => {
      attack(name, { callers: 40, isPersistent: true });
      expect(await measurePeak()).toBeLessThan(MAX_RESIDENT_MB);
      expect((await sendGet(service.port, "/livez", POLITE_ADDRESS)).status).toBe(200);
    },
  );

  test("stays below 256 MB through all attacks at once, and quotes at hand are answered", async () => {
    const path = (index: number): string => `${QUOTE_PATH}${25_000_000 + index}`;
    expect((await sendGet(service.port, path(0))).status).toBe(200);
    for (const name of ATTACKS) attack(name, { callers: 20, scale: TOGETHER_SCALES[name] });
    const client = startPoliteClient({ port: service.port, path, perSecond: 20 });
    expect(await measurePeak()).toBeLessThan(MAX_RESIDENT_MB);
    await client.stop();
    expect(client.latencies.count).toBeGreaterThan(0);
    expect(Object.fromEntries(client.failures)).toEqual({});
  });
});
