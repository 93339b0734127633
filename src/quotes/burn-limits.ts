import type { NetworkChainClients } from "../chain/chains.js";
import type { Chain, Network } from "../hop/networks.js";
import type { Clocks } from "../resilience/clock.js";
import { type ChainState, captureReadTimestamps } from "./state/chain-state.js";
import { readChainState } from "./state/read-chain-state.js";
import { createReadSet, type ReadSet } from "./state/read-set.js";
import { type LiquidityPlan, planBurnLimit } from "./state/route-liquidity.js";

/** How often limits are read that no quote reads: Circle changes them a few times a month. */
const REFRESH_MS = 10 * 60_000;
/** Units of one USDC, which has six decimals. */
const USDC = 1_000_000;

/** The burn limit of one chain. */
interface WatchedLimit {
  readonly chain: Chain;
  readonly plan: LiquidityPlan;
  readonly readSet: ReadSet;
  /** In units of USDC; undefined: not known. */
  limit: bigint | undefined;
  /** When it was read, or could not be, in milliseconds on the monotonic clock. */
  readAt: number;
}

/** Knows the burn limits of CCTP V1 on the chains of a network: from the reads for quotes, or from its own. */
export class BurnLimits {
  readonly #limits: ReadonlyMap<string, WatchedLimit>;
  readonly #chains: NetworkChainClients;
  readonly #clocks: Clocks;
  readonly #closing = new AbortController();

  constructor(network: Network, chains: NetworkChainClients, clocks: Clocks) {
    const watched = [...network.chains.values()].flatMap((chain): WatchedLimit[] => {
      const plan = planBurnLimit({ network, source: chain });
      const readSet = createReadSet({ contractReads: plan.sourceReads });
      return readSet ? [{ chain, plan, readSet, limit: undefined, readAt: Number.NEGATIVE_INFINITY }] : [];
    });
    this.#limits = new Map(watched.map((limit) => [limit.chain.slug, limit]));
    this.#chains = chains;
    this.#clocks = clocks;
  }

  /** Records the limit of a chain if a state of it includes that. */
  record(slug: string, state: ChainState): void {
    const watched = this.#limits.get(slug);
    if (watched === undefined || !state.covers(watched.readSet)) return;
    watched.limit = watched.plan.getLiquidity(state, undefined).available;
    watched.readAt = state.readAt;
  }

  /** Reads the limits in the background that have not been read for ten minutes. */
  refreshStale(): void {
    for (const watched of this.#limits.values()) {
      if (this.#clocks.monotonicNow() - watched.readAt < REFRESH_MS) continue;
      watched.readAt = this.#clocks.monotonicNow();
      // A chain that does not answer is reported as such; its last limit stays.
      this.#read(watched).catch(() => {});
    }
  }

  /** Returns the limits that are known, in USDC, by chain slug. */
  toUsdc(): ReadonlyMap<string, number> {
    return new Map(
      [...this.#limits.values()].flatMap(({ chain, limit }) =>
        limit === undefined ? [] : [[chain.slug, Number(limit) / USDC] as const],
      ),
    );
  }

  /** Ends reads in progress. */
  close(): void {
    this.#closing.abort();
  }

  async #read({ chain, readSet }: WatchedLimit): Promise<void> {
    const options = { ...captureReadTimestamps(this.#clocks), signal: this.#closing.signal };
    this.record(chain.slug, await readChainState(this.#chains.getClient(chain.slug), chain, [readSet], options));
  }
}
