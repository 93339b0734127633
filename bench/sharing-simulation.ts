import type { ChainClient } from "../src/chain/chain-client.js";
import { getBuiltInFeeSettings } from "../src/hop/fee-settings.js";
import { type Chain, getNetwork } from "../src/hop/networks.js";
import { findAvailableRoutes, type Route } from "../src/hop/routes.js";
import { ChainStateCache } from "../src/quotes/state/chain-state-cache.js";
import { computeRefreshPolicy } from "../src/quotes/state/chain-state-entry.js";
import { createReadSet, createUintRead, type ReadSet } from "../src/quotes/state/read-set.js";
import type { SharedStore } from "../src/shared-state/shared-cache.js";
import { createRandom } from "../test/support/index/random-events.js";
import { createSharedStoreStub, type SharedStoreStub } from "../test/support/stubs/shared-store.js";
import { pickSpread } from "./support/routes.js";
import { VirtualTime } from "./support/virtual-time.js";

// Simulates how replicas share the reads of chains, by discrete events: the caches and the locks are those of the service; Redis, the chains and the
// callers are simulated, and the clock jumps from event to event. Nothing takes CPU, so it says nothing about a process or a Redis that is too busy.
// REPLICAS=1,3,30 and SEED select what is simulated.

const COUNTS = (process.env.REPLICAS ?? "1,3,10,30,100").split(",").map(Number);
const SEED = Number(process.env.SEED ?? 1);
const ROUTES = Number(process.env.ROUTES ?? 10);
const WARM_UP_MS = 20_000;
const MEASURED_MS = 60_000;
/** Median time of one read of a chain; each takes half to twice as long. */
const CHAIN_MS = 40;
const REDIS_MS = 0.3;
/** Mean time between two quotes of a route at a replica. */
const QUOTE_INTERVAL_MS = 100;

/** Commands of Redis in each one of the store, as redis-store.ts sends them; of several names demanded at once, one. */
const COMMANDS: Readonly<Record<keyof SharedStore, number>> = {
  get: 3,
  set: 4,
  lock: 1,
  unlock: 3,
  demand: 5,
  listDemand: 3,
};
/** Pings of a process per second, to know whether Redis is there. */
const PINGS_PER_SECOND = 4;

const network = getNetwork("mainnet");
const routes = pickSpread(findAvailableRoutes(network, getBuiltInFeeSettings("mainnet"))).slice(0, ROUTES);
const time = new VirtualTime();
// The store and the service ask this clock.
Object.assign(Date, { now: time.now });
time.install();

/** Counts what replicas send. */
interface Counts {
  reads: number;
  waitsMs: number[];
  failures: number;
}

class Simulation {
  readonly #random = createRandom(SEED);
  readonly #store: SharedStoreStub | undefined;
  readonly #counts: Counts = { reads: 0, waitsMs: [], failures: 0 };
  #isEnded = false;

  /** @param isSharing whether there is a Redis */
  constructor(isSharing: boolean) {
    this.#store = isSharing ? createSharedStoreStub() : undefined;
    if (this.#store !== undefined) this.#store.latencyMs = REDIS_MS;
  }

  async run(replicas: number): Promise<void> {
    for (let count = 0; count < replicas; count++) this.#startReplica();
    const startedAt = time.now();
    await time.runUntil(startedAt + WARM_UP_MS);
    const first = this.#counts.reads;
    const commandsBefore = this.#countCommands();
    const pings = this.#store ? (replicas * PINGS_PER_SECOND * MEASURED_MS) / 1_000 : 0;
    Object.assign(this.#counts, { waitsMs: [] });
    await time.runUntil(startedAt + WARM_UP_MS + MEASURED_MS);
    const { reads, waitsMs, failures } = this.#counts;
    const perSecond = (count: number): string => ((count * 1_000) / MEASURED_MS).toFixed(2);
    waitsMs.sort((a, b) => a - b);
    const waited = waitsMs.filter((ms) => ms > 1).length;
    console.log(
      `  ${String(replicas).padStart(3)} replicas, Redis ${this.#store ? "shared" : "absent"}: ${perSecond(reads - first)} reads of chains/s, ` +
        `${perSecond(this.#countCommands() - commandsBefore + pings)} Redis commands/s, ` +
        `${((100 * waited) / waitsMs.length).toFixed(2)} % of quotes waited, the longest ${(waitsMs.at(-1) ?? 0).toFixed(0)} ms, ${failures} failed`,
    );
    this.#isEnded = true;
    await time.runUntil(time.now() + 120_000);
  }

  /** Counts as Redis does: with the commands in scripts. */
  #countCommands(): number {
    let total = 0;
    for (const [name, count] of this.#store?.commands ?? []) total += count * COMMANDS[name];
    return total;
  }

  #startReplica(): void {
    const shared = this.#store?.start();
    const caches = new Map<Chain, ChainStateCache>();
    const readSets = new Map<string, ReadSet>();
    const subscribe = (chain: Chain, route: Route) => {
      const name = `${route.token} ${route.source.slug} ${route.destination.slug}`;
      const key = `mainnet ${chain.slug}`;
      const cache =
        caches.get(chain) ??
        new ChainStateCache({
          chain: { ...chain, multicallAddress: undefined },
          client: this.#createClient(chain),
          clocks: { now: time.now, monotonicNow: time.now },
          sharing: shared && { cache: shared, key, findReadSet: (routeName) => readSets.get(`${routeName} ${key}`) },
        });
      caches.set(chain, cache);
      const data = `0x${routes.indexOf(route).toString(16).padStart(8, "0")}`;
      const readSet = createReadSet({ contractReads: [createUintRead({ to: "0x1", data })] });
      if (readSet === undefined) throw new Error("nothing to read");
      readSets.set(`${name} ${key}`, readSet);
      const policy = computeRefreshPolicy(route.source, route.destination, { maxAgeMs: undefined, maxStaleMs: 30_000 });
      return cache.subscribe(`${policy.refreshMs} ${name}`, readSet, policy, [name]);
    };
    for (const route of routes) {
      const ends = [subscribe(route.source, route), subscribe(route.destination, route)];
      const quote = async (): Promise<void> => {
        const askedAt = time.now();
        try {
          await Promise.all(ends.map((end) => end.get()));
        } catch {
          this.#counts.failures += 1;
        }
        this.#counts.waitsMs.push(time.now() - askedAt);
      };
      const ask = (): void => {
        if (this.#isEnded) return;
        void quote();
        // Callers come independently of each other.
        setTimeout(ask, -Math.log(1 - this.#random()) * QUOTE_INTERVAL_MS);
      };
      setTimeout(ask, this.#random() * 1_000);
    }
  }

  /** A chain whose newest block depends on the time alone. */
  #createClient({ slug, blockTimeMs }: Chain): ChainClient {
    const readBlock = () => {
      const number = 1_000 + Math.floor(time.now() / blockTimeMs);
      return { number: `0x${number.toString(16)}`, timestamp: `0x${Math.floor(time.now() / 1_000).toString(16)}` };
    };
    return {
      slug,
      send: async () => readBlock(),
      sendBatch: async (calls) => {
        this.#counts.reads += 1;
        await new Promise((resolve) => setTimeout(resolve, CHAIN_MS * 2 ** (2 * this.#random() - 1)));
        return calls.map(({ method }) => ({
          result: method === "eth_call" ? `0x${"1".padStart(64, "0")}` : readBlock(),
        }));
      },
      getLogs: () => Promise.reject(new Error("not simulated")),
    };
  }
}

console.log(`${ROUTES} routes, seed ${SEED}, ${MEASURED_MS / 1_000} simulated seconds each`);
await new Simulation(false).run(1);
for (const count of COUNTS) await new Simulation(true).run(count);
