import { decodeUintAt, toFunctionSelector } from "../chain/abi/abi-encoding.js";
import type { ChainClient } from "../chain/chain-client.js";
import { readContracts } from "../chain/read/contract-reads.js";
import { type FeedChain, getFeedDecimals, type PriceFeed } from "./chainlink-feeds.js";
import { isPlausiblePrice, type PriceDocument } from "./price-source.js";

/** Why a feed gives no price. */
export type FeedRefusal =
  /** The call reverts or returns something else. */
  | "unreadable"
  | "decimals"
  /** Zero or negative: there is no answer yet, or a circuit breaker. */
  | "not_positive"
  /** No update within the heartbeat. */
  | "stale"
  /** An update in the future. */
  | "future"
  /** Beyond any token's price. */
  | "implausible"
  /** The sequencer of the chain is down, or was until an hour ago: prices may be older than they seem. */
  | "sequencer"
  /** The feed of the token in which this one is quoted gives no price. */
  | "base";

/** What the feeds of one chain say. */
export interface FeedReading extends PriceDocument {
  readonly updatedAt: ReadonlyMap<string, number>;
  /** By symbol. */
  readonly refusals: ReadonlyMap<string, FeedRefusal>;
}

/** How late after its heartbeat an update may be: it has to get into a block. */
const HEARTBEAT_MARGIN_MS = 15 * 60_000;
/** After an outage of the sequencer, prices count only after this time, as Chainlink recommends. */
const SEQUENCER_GRACE_MS = 60 * 60_000;
const SIGN_BIT = 1n << 255n;

/** Returns (roundId, answer, startedAt, updatedAt, answeredInRound). */
const LATEST_ROUND_DATA_SELECTOR = toFunctionSelector("latestRoundData()");
const DECIMALS_SELECTOR = toFunctionSelector("decimals()");

/**
 * Reads the feeds of a chain in one block. A feed whose round cannot be trusted gives no price but a refusal.
 * All ages count from the time of the block, and the document is as old as that: this machine's clock may be wrong.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no response
 */
export async function readFeeds(
  options: {
    readonly client: ChainClient;
    readonly multicallAddress: string | undefined;
    readonly feedChain: FeedChain;
  },
  signal: AbortSignal,
): Promise<FeedReading> {
  const { client, multicallAddress, feedChain } = options;
  const { feeds, sequencerFeed } = feedChain;
  const calls = feeds.flatMap(({ address: to }) => [
    { to, data: LATEST_ROUND_DATA_SELECTOR },
    { to, data: DECIMALS_SELECTOR },
  ]);
  if (sequencerFeed !== undefined) calls.push({ to: sequencerFeed, data: LATEST_ROUND_DATA_SELECTOR });
  const { block, returnData } = await readContracts(client, multicallAddress, { contractCalls: calls }, signal);
  const blockMs = Number(block.timeSeconds) * 1000;
  const isChainTrusted = sequencerFeed === undefined || isSequencerUp(returnData[2 * feeds.length], blockMs);
  const prices = new Map<string, number>();
  const updatedAt = new Map<string, number>();
  const refusals = new Map<string, FeedRefusal>();
  for (const [index, feed] of feeds.entries()) {
    const round = isChainTrusted
      ? parseRound(feed, returnData[2 * index], returnData[2 * index + 1], blockMs)
      : "sequencer";
    if (typeof round === "string") {
      refusals.set(feed.symbol, round);
      continue;
    }
    const base = feed.quotedIn === undefined ? 1 : prices.get(feed.quotedIn);
    const price = base === undefined ? undefined : round.answer * base;
    if (isPlausiblePrice(price)) {
      prices.set(feed.symbol, price);
      // A price that is computed from two feeds is as old as the older one.
      updatedAt.set(feed.symbol, Math.min(round.updatedAt, updatedAt.get(feed.quotedIn ?? "") ?? round.updatedAt));
    } else refusals.set(feed.symbol, price === undefined ? "base" : "implausible");
  }
  return { timestamp: blockMs, prices, updatedAt, refusals };
}

/** Returns the answer as a number, and the time of its update in milliseconds since 1970. */
function parseRound(
  feed: PriceFeed,
  roundData: string | undefined,
  decimalsData: string | undefined,
  blockMs: number,
): { readonly answer: number; readonly updatedAt: number } | FeedRefusal {
  const answer = decodeUintAt(roundData ?? "0x", 1);
  const updatedAtSeconds = decodeUintAt(roundData ?? "0x", 3);
  const decimals = decodeUintAt(decimalsData ?? "0x", 0);
  if (answer === undefined || updatedAtSeconds === undefined || decimals === undefined) return "unreadable";
  if (decimals !== BigInt(getFeedDecimals(feed))) return "decimals";
  if (answer === 0n || answer >= SIGN_BIT) return "not_positive";
  const updatedAt = Number(updatedAtSeconds) * 1000;
  if (updatedAt > blockMs) return "future";
  if (blockMs - updatedAt > feed.heartbeatSeconds * 1000 + HEARTBEAT_MARGIN_MS) return "stale";
  return { answer: Number(answer) / 10 ** Number(decimals), updatedAt };
}

/** Returns whether the uptime feed says that the sequencer is up (answer 0), and for long enough. */
function isSequencerUp(roundData: string | undefined, blockMs: number): boolean {
  const answer = decodeUintAt(roundData ?? "0x", 1);
  const startedAtSeconds = decodeUintAt(roundData ?? "0x", 2);
  // A round that has not started is no answer.
  if (answer !== 0n || startedAtSeconds === undefined || startedAtSeconds === 0n) return false;
  return blockMs - Number(startedAtSeconds) * 1000 > SEQUENCER_GRACE_MS;
}
