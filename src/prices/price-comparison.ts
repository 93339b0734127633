import { MAX_PRICE_AGE_MS, type PriceDocument, type PriceSource } from "./price-source.js";

export interface DistrustEvent {
  readonly source: PriceSource["name"];
  readonly token: string;
  readonly isDistrusted: boolean;
  /** USD. */
  readonly price: number;
  /** undefined: the other source has not been read yet. */
  readonly otherPrice: number | undefined;
}

/** A change beyond this ratio between two documents is a jump. */
const JUMP_RATIO = 0.5;
/**
 * Longest time between the two documents. They are read once a minute, but not while nobody needs a price. Also how long a
 * price has to stay after its jump to be believed while no other source can be read.
 */
const JUMP_WINDOW_MS = MAX_PRICE_AGE_MS;
/** Sources that differ by no more agree. */
const AGREEMENT_RATIO = 0.02;

interface Distrust {
  readonly source: PriceSource;
  /** The price before the jump. */
  readonly priceBefore: number;
  /** The newest price that was judged. */
  readonly price: number;
  /** When the first document after the last jump was read, in milliseconds on the monotonic clock. */
  readonly steadySince: number;
  /** Whether another source has a price, and it is a different one; otherwise the other source is awaited. */
  readonly isContradicted: boolean;
}

/** Judges the preferred source of each token by the next one. */
export class PriceJudge {
  readonly #sources: readonly PriceSource[];
  readonly #onDistrust: ((event: DistrustEvent) => void) | undefined;
  readonly #distrusted = new Map<string, Distrust>();

  /**
   * @param sources in order of preference
   * @param onDistrust called when a source begins or ceases to be distrusted about a token
   */
  constructor(sources: readonly PriceSource[], onDistrust: ((event: DistrustEvent) => void) | undefined) {
    this.#sources = sources;
    this.#onDistrust = onDistrust;
  }

  /** Judges again: some document is newer. */
  update(): void {
    for (const key of this.#listKeys()) this.#judge(key);
  }

  /** Returns whether a source is not believed that this is the price of a token. The price before its jump is believed. */
  isDistrusted(source: PriceSource, key: string, price: number): boolean {
    if (this.#distrusted.size === 0) return false;
    const distrust = this.#distrusted.get(key);
    return distrust?.source === source && relativeDifference(price, distrust.priceBefore) > JUMP_RATIO;
  }

  /** Returns whether a source is not believed about any token. */
  hasDistrusted(): boolean {
    return this.#distrusted.size > 0;
  }

  /** Returns the tokens about which a source is not believed. */
  listDistrusted(): readonly string[] {
    return [...this.#distrusted.keys()];
  }

  /**
   * Compares the prices of all tokens of which two sources have one now.
   * @returns upper-case symbol, and difference of the preferred price relative to that of the other source: 0.02 is 2 %
   */
  compare() {
    return [...this.#listKeys()].flatMap((token) => {
      const pair = this.#findPair(token);
      return pair === undefined ? [] : [{ token, difference: relativeDifference(pair.preferred.usd, pair.other.usd) }];
    });
  }

  /** Returns the current prices of a token in the first two sources that have one. */
  #findPair(key: string): { readonly preferred: SourcePrice; readonly other: SourcePrice } | undefined {
    const [preferred, other] = this.#sources.flatMap((source) => findSourcePrice(source, key) ?? []);
    return preferred !== undefined && other !== undefined ? { preferred, other } : undefined;
  }

  #listKeys(): ReadonlySet<string> {
    return new Set(this.#sources.flatMap((source) => [...(source.getDocument()?.prices.keys() ?? [])]));
  }

  #judge(key: string): void {
    const pair = this.#findPair(key);
    if (pair === undefined) {
      this.#judgeAlone(key);
      return;
    }
    const { preferred, other } = pair;
    const before = this.#distrusted.get(key);
    const isAgreed = relativeDifference(preferred.usd, other.usd) <= AGREEMENT_RATIO;
    if (before !== undefined) {
      const isBack = relativeDifference(preferred.usd, before.priceBefore) <= JUMP_RATIO;
      if (isAgreed || isBack) this.#believe(key, preferred, other.usd);
      else this.#distrusted.set(key, { ...before, isContradicted: true });
      return;
    }
    const jumpFrom = findJump(preferred.source, key);
    if (jumpFrom === undefined || isAgreed || findJump(other.source, key) !== undefined) return;
    this.#distrust(key, preferred, { priceBefore: jumpFrom, otherPrice: other.usd });
  }

  /**
   * Judges a token of which one source has a price, or none. A jump waits for another source that may have the price, but
   * no longer than the new price has to stay.
   */
  #judgeAlone(key: string): void {
    const before = this.#distrusted.get(key);
    const sources = before === undefined ? this.#sources : [before.source];
    const [current] = sources.flatMap((each) => findSourcePrice(each, key) ?? []);
    if (current === undefined) return;
    const { source, usd, readAt } = current;
    const isAwaited = (other: PriceSource): boolean =>
      other !== source && other.mayPrice(key) && !other.hasCurrentDocument();
    const canBeConfirmed = this.#sources.some(isAwaited);
    if (before === undefined) {
      const priceBefore = findJump(source, key);
      if (priceBefore !== undefined && canBeConfirmed)
        this.#distrust(key, current, { priceBefore, otherPrice: undefined });
      return;
    }
    const isBack = relativeDifference(usd, before.priceBefore) <= JUMP_RATIO;
    const isSteady = relativeDifference(usd, before.price) <= JUMP_RATIO;
    const steadySince = isSteady ? before.steadySince : readAt;
    const hasStayed = readAt - steadySince >= JUMP_WINDOW_MS;
    if (isBack || (!before.isContradicted && (!canBeConfirmed || hasStayed))) this.#believe(key, current, undefined);
    else this.#distrusted.set(key, { ...before, price: usd, steadySince });
  }

  #distrust(
    token: string,
    { source, usd, readAt }: SourcePrice,
    { priceBefore, otherPrice }: Pick<Distrust, "priceBefore"> & Pick<DistrustEvent, "otherPrice">,
  ): void {
    const isContradicted = otherPrice !== undefined;
    this.#distrusted.set(token, { source, priceBefore, price: usd, steadySince: readAt, isContradicted });
    this.#onDistrust?.({ source: source.name, token, isDistrusted: true, price: usd, otherPrice });
  }

  #believe(token: string, { source, usd }: SourcePrice, otherPrice: number | undefined): void {
    this.#distrusted.delete(token);
    this.#onDistrust?.({ source: source.name, token, isDistrusted: false, price: usd, otherPrice });
  }
}

/** What a source has as the price of a token. */
interface SourcePrice {
  readonly source: PriceSource;
  readonly usd: number;
  /** When its document was read, in milliseconds on the monotonic clock. */
  readonly readAt: number;
}

/** Returns the current price of a token in a source; undefined: it has none. */
function findSourcePrice(source: PriceSource, key: string): SourcePrice | undefined {
  const document = source.getDocument();
  const usd = source.findPrice(key, document);
  return document === undefined || usd === undefined ? undefined : { source, usd, readAt: document.readAt };
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
