import type { NetworkChainClients } from "../chain/chains.js";
import type { BlockAgeMonitor } from "../chain/heads/block-age-monitor.js";
import type { BlockReading } from "../chain/heads/head-tracker.js";
import { readLatestBlockHeader } from "../chain/read/chain-reads.js";
import { ServiceError } from "../errors.js";
import type { Chain } from "../hop/networks.js";
import { type MaybePromise, mapMaybeAsync } from "../resilience/maybe-async.js";
import type { Requester } from "../resilience/waiters.js";
import type { QuoteEngine } from "./quote-engine.js";
import type { ChainState } from "./state/chain-state.js";
import type { QuoteRequest } from "./state/quote-request.js";

/** What quotes need to know about the age of blocks. */
export type QuoteBlockAges = Pick<BlockAgeMonitor, "stalledCount" | "findStalled" | "isTooOld" | "getAgeMs">;

/**
 * Refuses quotes on routes of stalled chains with CHAIN_STALLED: nobody knows what holds there when the transfer
 * is sent. Checks after each quote, because its own reads may be what tells.
 */
export function refuseStalled(
  engine: QuoteEngine,
  options: {
    readonly blockAges: QuoteBlockAges;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    /** Whether the engine checks the blocks that it reads through endpoints of callers; otherwise they are read here. */
    readonly checksCustomEndpoints: boolean;
  },
): QuoteEngine {
  const { blockAges, now, checksCustomEndpoints } = options;

  /** @throws ServiceError CHAIN_STALLED */
  function assertMoving({ network, source, destination }: QuoteRequest, access?: NetworkChainClients): void {
    if (blockAges.stalledCount() === 0) return;
    for (const { slug } of [source, destination]) {
      const block = blockAges.findStalled(network, slug);
      if (block !== undefined && access?.hasCustomEndpoint(slug) !== true) throw createError(slug, block.ageMs);
    }
  }

  async function assertCustomEndpointsMoving(
    request: QuoteRequest,
    access: NetworkChainClients,
    { signal }: Requester,
  ): Promise<void> {
    const custom = [request.source, request.destination].filter(({ slug }) => access.hasCustomEndpoint(slug));
    const check = async (chain: Chain): Promise<void> => {
      const readAt = now();
      const { timestamp } = await readLatestBlockHeader(access.getClient(chain.slug), signal);
      assertBlockYoung(blockAges, request, chain, { timestamp, readAt });
    };
    await Promise.all(custom.map(check));
  }

  function check<T>(request: QuoteRequest, quote: MaybePromise<T>): MaybePromise<T> {
    return mapMaybeAsync(quote, (value) => {
      assertMoving(request);
      return value;
    });
  }

  return {
    quote: (request, requester) => check(request, engine.quote(request, requester)),
    async quoteWithCustomEndpoints(request, access, requester) {
      const [quote] = await Promise.all([
        engine.quoteWithCustomEndpoints(request, access, requester),
        checksCustomEndpoints ? undefined : assertCustomEndpointsMoving(request, access, requester),
      ]);
      assertMoving(request, access);
      return quote;
    },
    prepareQuotes: (requests, requester) =>
      engine
        .prepareQuotes(requests, requester)
        .map((prepared, index) =>
          mapMaybeAsync(prepared, (compute) => () => check(requests[index] as QuoteRequest, compute())),
        ),
  };
}

/** @throws ServiceError CHAIN_STALLED for a block that was too old when it was read */
function assertBlockYoung(
  blockAges: Pick<QuoteBlockAges, "isTooOld" | "getAgeMs">,
  { network }: Pick<QuoteRequest, "network">,
  { slug }: Chain,
  block: BlockReading,
): void {
  if (blockAges.isTooOld(network, slug, block)) throw createError(slug, blockAges.getAgeMs(block));
}

/** The same for the block of a state; undefined: nothing is limited, or read. */
export function assertStateYoung(
  blockAges: Pick<QuoteBlockAges, "isTooOld" | "getAgeMs"> | undefined,
  request: QuoteRequest,
  chain: Chain,
  state: ChainState | undefined,
): void {
  if (blockAges === undefined || state === undefined) return;
  const block = { timestamp: Number(state.block.timeSeconds), readAt: state.readAt };
  assertBlockYoung(blockAges, request, chain, block);
}

function createError(slug: string, ageMs: number): ServiceError {
  return new ServiceError("CHAIN_STALLED", `${slug} is stalled: its newest block is ${formatAge(ageMs)} old`);
}

function formatAge(ageMs: number): string {
  const seconds = Math.round(ageMs / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
