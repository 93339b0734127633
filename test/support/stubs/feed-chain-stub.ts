import { encodeBytes, encodeWithOffsets, encodeWord } from "../../../src/chain/abi/abi-encoding.js";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { type FeedChain, getFeedDecimals } from "../../../src/prices/chainlink-feeds.js";

/** A round of a price feed. Times are Unix seconds; by default, those of the block. */
export interface FeedRound {
  readonly answer: bigint;
  readonly updatedAt?: number;
  readonly startedAt?: number;
  /** Default: those of the feed. */
  readonly decimals?: bigint;
}

/**
 * Creates the client of a chain whose Multicall3 answers for price feeds, in one call.
 * @param getRounds rounds by the upper-case symbol of the token, or `sequencer`; without one, the call of a feed reverts
 * @param blockSeconds time of the newest block
 */
export function createFeedChainStub(
  feedChain: FeedChain,
  getRounds: () => Readonly<Record<string, FeedRound | undefined>>,
  blockSeconds: number,
): ChainClient {
  const { slug, feeds, sequencerFeed } = feedChain;

  function encodeRound(round: FeedRound | undefined): string | undefined {
    if (round === undefined) return undefined;
    const { answer, updatedAt = blockSeconds, startedAt = updatedAt } = round;
    const words = [1n, BigInt.asUintN(256, answer), BigInt(startedAt), BigInt(updatedAt), 1n];
    return `0x${words.map(encodeWord).join("")}`;
  }

  function listResults(): readonly (string | undefined)[] {
    const rounds = getRounds();
    const blockResults = [BigInt(blockSeconds), 7n].map((value) => `0x${encodeWord(value)}`);
    const feedResults = feeds.flatMap((feed) => {
      const round = rounds[feed.symbol];
      return [encodeRound(round), round && `0x${encodeWord(round.decimals ?? BigInt(getFeedDecimals(feed)))}`];
    });
    const sequencerResults = sequencerFeed === undefined ? [] : [encodeRound(rounds.sequencer)];
    return [...blockResults, ...feedResults, ...sequencerResults];
  }

  return {
    slug,
    send: () => Promise.reject(new Error("feeds are read by a batch")),
    getLogs: () => Promise.reject(new Error("feeds have no logs")),
    async sendBatch(calls) {
      if (calls.length !== 1) throw new Error("feeds are read by one call");
      const tuples = listResults().map(
        (data) => encodeWord(data === undefined ? 0n : 1n) + encodeWord(64n) + encodeBytes(data ?? "0x"),
      );
      return [{ result: `0x${encodeWord(32n)}${encodeWord(BigInt(tuples.length))}${encodeWithOffsets(tuples)}` }];
    },
  };
}
