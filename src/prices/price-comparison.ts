import { MAX_PRICE_AGE_MS, type PriceDocument } from "./price-document.js";
import { findSourcePrice, type PriceSource } from "./price-source.js";

/** How the price of a token in the preferred source compares with the next source that has one. */
export interface PriceComparison {
  /** Upper-case symbol of the token. */
  readonly token: string;
  /** Difference relative to the other source's price: 0.02 is 2 %. */
  readonly difference: number;
}

/** Judges the preferred source of each token by the next one. */
export interface PriceJudge {
  /** Judges again: some document is newer. */
  update(): void;
  /** Returns whether the preferred source is not believed about a token. */
  isDistrusted(source: PriceSource, key: string): boolean;
  /** Returns the tokens about which a source is not believed. */
  listDistrusted(): readonly string[];
  /** Compares all tokens of which two sources have a price now. */
  compare(): readonly PriceComparison[];
}

export interface PriceJudgeOptions {
  /** In order of preference. */
  readonly sources: readonly PriceSource[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called when a source begins or ceases to be distrusted about a token. */
  readonly onDistrust?: (event: DistrustEvent) => void;
}

export interface DistrustEvent {
  readonly source: PriceSource["name"];
  readonly token: string;
  readonly isDistrusted: boolean;
  /** USD. */
  readonly price: number;
  readonly otherPrice: number;
}

/** A change beyond this ratio between two documents is a jump. */
const JUMP_RATIO = 0.5;
/** Longest time between the two documents. They are read once a minute, but not while nobody needs a price. */
const JUMP_WINDOW_MS = MAX_PRICE_AGE_MS;
/** Sources that differ by no more agree. */
const AGREEMENT_RATIO = 0.02;

interface Distrust {
  readonly source: PriceSource;
  /** The price before the jump. */
  readonly priceBefore: number;
}

export function createPriceJudge({ sources, now, onDistrust }: PriceJudgeOptions): PriceJudge {
  const distrusted = new Map<string, Distrust>();

  /** Returns the current prices of a token in the first two sources that have one. */
  function findPair(key: string) {
    const time = now();
    const priced = sources.flatMap((source) => {
      const usd = findSourcePrice(source.getDocument(), key, time);
      return usd === undefined ? [] : [{ source, usd }];
    });
    const [preferred, other] = priced;
    return preferred !== undefined && other !== undefined ? { preferred, other } : undefined;
  }

  function listKeys(): ReadonlySet<string> {
    return new Set(sources.flatMap((source) => [...(source.getDocument()?.prices.keys() ?? [])]));
  }

  function judge(key: string): void {
    const pair = findPair(key);
    // With one source, there is nothing to judge by.
    if (pair === undefined) return;
    const { preferred, other } = pair;
    const before = distrusted.get(key);
    const isAgreed = relativeDifference(preferred.usd, other.usd) <= AGREEMENT_RATIO;
    if (before !== undefined) {
      const isBack = relativeDifference(preferred.usd, before.priceBefore) <= JUMP_RATIO;
      if (!isAgreed && !isBack) return;
      distrusted.delete(key);
    } else {
      const jumpFrom = findJump(preferred.source, key);
      if (jumpFrom === undefined || isAgreed || findJump(other.source, key) !== undefined) return;
      distrusted.set(key, { source: preferred.source, priceBefore: jumpFrom });
    }
    onDistrust?.({
      source: preferred.source.name,
      token: key,
      isDistrusted: before === undefined,
      price: preferred.usd,
      otherPrice: other.usd,
    });
  }

  return {
    update() {
      for (const key of listKeys()) judge(key);
    },
    isDistrusted: (source, key) => distrusted.size > 0 && distrusted.get(key)?.source === source,
    listDistrusted: () => [...distrusted.keys()],
    compare: () =>
      [...listKeys()].flatMap((token) => {
        const pair = findPair(token);
        return pair === undefined
          ? []
          : [{ token, difference: relativeDifference(pair.preferred.usd, pair.other.usd) }];
      }),
  };
}

/** Returns the price before the jump that a source's newest document makes; undefined: it makes none. */
function findJump(source: PriceSource, key: string): number | undefined {
  const document = source.getDocument();
  const previous = source.getPreviousDocument();
  if (document === undefined || previous === undefined || !isSoonAfter(previous, document)) return undefined;
  const price = document.prices.get(key);
  const priceBefore = previous.prices.get(key);
  if (price === undefined || priceBefore === undefined) return undefined;
  return relativeDifference(price, priceBefore) > JUMP_RATIO ? priceBefore : undefined;
}

function isSoonAfter(previous: PriceDocument, { timestamp }: PriceDocument): boolean {
  return timestamp - previous.timestamp <= JUMP_WINDOW_MS;
}

function relativeDifference(price: number, reference: number): number {
  return Math.abs(price / reference - 1);
}
