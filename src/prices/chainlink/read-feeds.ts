import { decodeUintAt, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ChainClient } from "../../chain/chain-client.js";
import { readContracts } from "../../chain/read/contract-reads.js";
import { isPlausiblePrice, MAX_PRICE_AGE_MS, type PriceDocument } from "../price-document.js";
import type { FeedChain, PriceFeed } from "./feeds.js";

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

export interface ReadFeedsOptions {
  readonly client: ChainClient;
  readonly multicallAddress: string | undefined;
  readonly feedChain: FeedChain;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** How late after its heartbeat an update may be: it has to get into a block. */
const HEARTBEAT_MARGIN_MS = 15 * 60_000;
/** How far the clocks of a chain and of this machine may be apart. */
const CLOCK_MARGIN_MS = 2 * 60_000;
/** After an outage of the sequencer, prices count only after this time, as Chainlink recommends. */
const SEQUENCER_GRACE_MS = 60 * 60_000;
const SIGN_BIT = 1n << 255n;

/** Returns (roundId, answer, startedAt, updatedAt, answeredInRound). */
const LATEST_ROUND_DATA_SELECTOR = toFunctionSelector("latestRoundData()");
const DECIMALS_SELECTOR = toFunctionSelector("decimals()");

/**
 * Reads the feeds of a chain in one block. A feed whose round cannot be trusted gives no price.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no response
 * @throws Error when its newest block is too old, or no feed gives a price
 */
export async function readFeeds(options: ReadFeedsOptions, signal: AbortSignal): Promise<FeedReading> {
  const { client, multicallAddress, feedChain, now } = options;
  const { feeds, sequencerFeed } = feedChain;
  const calls = feeds.flatMap(({ address: to }) => [
    { to, data: LATEST_ROUND_DATA_SELECTOR },
    { to, data: DECIMALS_SELECTOR },
  ]);
  if (sequencerFeed !== undefined) calls.push({ to: sequencerFeed, data: LATEST_ROUND_DATA_SELECTOR });
  // The number of the block is not used, so that it does not matter whether contracts see the one of L1.
  const access = { multicallAddress, hasL1BlockNumbers: false };
  const { block, returnData } = await readContracts(client, access, calls, [], signal);
  const nowMs = now();
  if (nowMs - Number(block.timeSeconds) * 1000 > MAX_PRICE_AGE_MS) {
    throw new Error(`the newest block of ${client.slug} is too old for prices`);
  }
  const isChainTrusted = sequencerFeed === undefined || isSequencerUp(returnData[2 * feeds.length], nowMs);
  const prices = new Map<string, number>();
  const updatedAt = new Map<string, number>();
  const refusals = new Map<string, FeedRefusal>();
  for (const [index, feed] of feeds.entries()) {
    const round = isChainTrusted
      ? parseRound(feed, returnData[2 * index], returnData[2 * index + 1], nowMs)
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
  if (prices.size === 0) throw new Error(`no feed of ${client.slug} gives a price (${[...refusals.values()][0]})`);
  return { timestamp: nowMs, prices, updatedAt, refusals };
}

/** Returns the answer as a number, and the time of its update in milliseconds since 1970. */
function parseRound(
  feed: PriceFeed,
  roundData: string | undefined,
  decimalsData: string | undefined,
  nowMs: number,
): { readonly answer: number; readonly updatedAt: number } | FeedRefusal {
  const answer = decodeUintAt(roundData ?? "0x", 1);
  const updatedAtSeconds = decodeUintAt(roundData ?? "0x", 3);
  const decimals = decodeUintAt(decimalsData ?? "0x", 0);
  if (answer === undefined || updatedAtSeconds === undefined || decimals === undefined) return "unreadable";
  if (decimals !== BigInt(feed.decimals)) return "decimals";
  if (answer === 0n || answer >= SIGN_BIT) return "not_positive";
  const updatedAt = Number(updatedAtSeconds) * 1000;
  if (updatedAt > nowMs + CLOCK_MARGIN_MS) return "future";
  if (nowMs - updatedAt > feed.heartbeatSeconds * 1000 + HEARTBEAT_MARGIN_MS) return "stale";
  return { answer: Number(answer) / 10 ** Number(decimals), updatedAt };
}

/** Returns whether the uptime feed says that the sequencer is up (answer 0), and for long enough. */
function isSequencerUp(roundData: string | undefined, nowMs: number): boolean {
  const answer = decodeUintAt(roundData ?? "0x", 1);
  const startedAtSeconds = decodeUintAt(roundData ?? "0x", 2);
  // A round that has not started is no answer.
  if (answer !== 0n || startedAtSeconds === undefined || startedAtSeconds === 0n) return false;
  return nowMs - Number(startedAtSeconds) * 1000 > SEQUENCER_GRACE_MS;
}
