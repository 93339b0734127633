import type { UpstreamError } from "../../resilience/upstream-error.js";
import { type BlockRange, type ChainClient, getResult } from "../chain-client.js";
import { toQuantity } from "../hex.js";
import { areLogsMatching } from "../json-rpc/parse-results.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import type { HedgedRequester, Upstream } from "./hedged-requests.js";

export interface AdaptiveLogReaderOptions {
  readonly upstreams: readonly Upstream[];
  /** Whether an endpoint is as good as it should be. */
  readonly isHealthy: (member: Upstream) => boolean;
  readonly request: HedgedRequester;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** What an endpoint was found to take at most, and until when that is believed, in milliseconds on the steady clock. */
interface BlockRangeLimit {
  readonly maxBlocks: number;
  readonly expiresAt: number;
}

/** What an endpoint that refuses more, and does not say how much it takes, is asked next, in blocks. */
export const DEFAULT_MAX_BLOCK_RANGE = 10_000;
/** Fewer blocks are not tried: who refuses these does not mean their number. */
export const MIN_BLOCK_RANGE = 10;
/** For how long a limit is believed: it may have been a bad moment, or have been lifted. */
const RANGE_LIMIT_TTL_MS = 10 * 60_000;
/** The same where the width was not what was meant. */
const UNCERTAIN_LIMIT_TTL_MS = 30_000;
/** HTTP statuses for a question or an answer that is too long, or took too long. */
const TOO_LARGE_STATUSES: ReadonlySet<number | undefined> = new Set([400, 408, 413, 504, 524]);

/** Searches logs over endpoints each of which takes another number of blocks at once, which shows when it refuses more. */
export function createAdaptiveLogReader({
  upstreams,
  isHealthy,
  request,
  now,
}: AdaptiveLogReaderOptions): ChainClient["getLogs"] {
  const limits = new Map<Upstream, BlockRangeLimit>();

  function mostOf(member: Upstream): number {
    const limit = limits.get(member);
    return limit === undefined || now() >= limit.expiresAt ? Number.POSITIVE_INFINITY : limit.maxBlocks;
  }

  /** Learns from a refusal. @param named what the refusal says to be the most */
  function narrow(member: Upstream, width: number, named: number | undefined): void {
    const last = limits.get(member);
    const half = Math.max(Math.min(Math.floor(width / 2), DEFAULT_MAX_BLOCK_RANGE), MIN_BLOCK_RANGE);
    // What was found before is likely still so. Twice as much, in order that one bad moment does not count for ever.
    const isKnown = last !== undefined && last.maxBlocks > MIN_BLOCK_RANGE && last.maxBlocks < width;
    const isBelieved = isKnown && now() < last.expiresAt;
    const guess = isKnown ? Math.min(last.maxBlocks * (isBelieved ? 1 : 2), Math.max(half, last.maxBlocks)) : half;
    const blocks = named ?? guess;
    limits.set(member, {
      maxBlocks: isBelieved ? Math.min(blocks, last.maxBlocks) : blocks,
      expiresAt: now() + RANGE_LIMIT_TTL_MS,
    });
  }

  return async (filter, range, newestFirst, signal) => {
    /** Endpoints that failed, and not because of the width. */
    const failed = new Set<Upstream>();
    let failure: unknown = new Error("a chain without endpoints");
    for (;;) {
      const left = upstreams.filter((member) => !failed.has(member));
      if (left.length === 0) throw failure;
      // Rather two searches of an endpoint that is well than one of another.
      const well = left.filter(isHealthy);
      const asked = truncateRange(range, Math.max(...(well.length > 0 ? well : left).map(mostOf)), newestFirst);
      if (asked === undefined) return undefined;
      const width = countBlocks(asked);
      const fitting = new Set(left.filter((member) => mostOf(member) >= width));
      let wasAsked = false;
      try {
        const call = {
          method: "eth_getLogs",
          params: [{ ...filter, ...encodeBlockRange(asked) }],
          // Who gives what was not asked for has not searched for what was.
          validate: (found: unknown) => areLogsMatching(found, filter, asked),
        };
        const [outcome] = await request([call], signal, {
          isEligible: (member) => fitting.has(member),
          isRangeTooWide(member, error, isLate) {
            wasAsked = true;
            const isRefusal = isBlockRangeError(error);
            if (isRefusal && width <= MIN_BLOCK_RANGE) {
              limits.set(member, { maxBlocks: MIN_BLOCK_RANGE, expiresAt: now() + UNCERTAIN_LIMIT_TTL_MS });
            } else if (isRefusal || isLate) {
              narrow(member, width, isRefusal ? parseSuggestedBlockRange(error, asked) : undefined);
              // Who is late with little is late with everything.
              if (isRefusal || width > DEFAULT_MAX_BLOCK_RANGE) return true;
            }
            failed.add(member);
            return false;
          },
        });
        return { result: getResult(outcome), range: asked };
      } catch (error) {
        failure = error;
        // They rest, or nobody waits any more.
        if (!wasAsked) for (const member of fitting) failed.add(member);
      }
    }
  };
}

/** The part of a range that has at most so many blocks; undefined when it is not known where that ends. */
function truncateRange(range: BlockRange, blocks: number, newestFirst: boolean): BlockRange | undefined {
  const { from, to } = range;
  if (countBlocks(range) <= blocks) return range;
  if (to === Number.POSITIVE_INFINITY) return undefined;
  return newestFirst ? { from: to - blocks + 1, to } : { from, to: from + blocks - 1 };
}

function countBlocks({ from, to }: BlockRange): number {
  return to - from + 1;
}

function encodeBlockRange({ from, to }: BlockRange) {
  return { fromBlock: toQuantity(from), toBlock: to === Number.POSITIVE_INFINITY ? "latest" : toQuantity(to) };
}

export function isBlockRangeError(error: UpstreamError): boolean {
  if (error instanceof RpcError) return error.classification?.kind === undefined;
  return TOO_LARGE_STATUSES.has(error.status) || error.kind === "too_large";
}

/** The most blocks that a refusal names, where it plausibly does. */
export function parseSuggestedBlockRange(error: UpstreamError, asked: BlockRange): number | undefined {
  if (!(error instanceof RpcError)) return undefined;
  const numbers = (error.classification?.numbers ?? []).filter(
    (each) => each >= MIN_BLOCK_RANGE && each < countBlocks(asked) && each !== asked.from && each !== asked.to,
  );
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}
