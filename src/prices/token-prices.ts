import { ServiceError } from "../errors.js";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { type DistrustEvent, PriceJudge } from "./price-comparison.js";
import { type PriceSource, upperCaseSymbols } from "./price-source.js";

/** Token prices at one time. */
export interface PriceTable {
  /**
   * Returns the price of one whole token in US dollars.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no source has a usable price.
   */
  getUsdPrice(symbol: string): number;
  /** Returns where this price comes from. @throws like getUsdPrice */
  readonly getOrigin: (symbol: string) => PriceOrigin;
}

/** Where a price comes from. */
export interface PriceOrigin {
  readonly source: "FIXED" | PriceSource["name"];
  /** When the source last updated the price, Unix seconds; 0 for a fixed price. */
  readonly updatedAtSeconds: number;
}

export interface TokenPrices {
  /** Returns a table with the newest prices of these tokens; it may contain others. */
  getTable(symbols: readonly string[]): Promise<PriceTable>;
  /** Returns what getTable() returns if it is cached, otherwise undefined; the same object until there is a newer one. */
  peekTable(symbols: readonly string[]): PriceTable | undefined;
  /** Returns the newest price of one whole token. */
  getUsdPrice(symbol: string): Promise<number>;
}

/** How long a source that does not answer is awaited where a later one may have the price. */
const MAX_WAIT_MS = 1_000;

/** How long a source is awaited that has to confirm a jump; a call may wait twice. */
const MAX_CONFIRMATION_WAIT_MS = 4_000;

const FIXED_ORIGIN: PriceOrigin = { source: "FIXED", updatedAtSeconds: 0 };

/** Tokens that have the price of another one, as in the SDK. */
const PRICE_ALIASES: Readonly<Record<string, string>> = {
  "USDC.e": "USDC",
  WETH: "ETH",
  WMATIC: "MATIC",
  WPOL: "MATIC",
  WXDAI: "DAI",
  XDAI: "DAI",
};

/** A token as the sources know it. */
interface PricedToken {
  /** Its symbol, or that of the token whose price it has. */
  readonly name: string;
  /** The same in upper case. */
  readonly key: string;
  /** undefined: no fixed price. */
  readonly fixedUsd: number | undefined;
}

/** Token prices from the first of several sources that has a usable one. */
export class ComparedTokenPrices implements TokenPrices {
  readonly #sources: readonly PriceSource[];
  readonly #fixedPrices: ReadonlyMap<string, number>;
  readonly #judge: PriceJudge;
  readonly #tokens = new Map<string, PricedToken>();
  #newest: {
    /** By source, in their order. */
    readonly documents: readonly ReturnType<PriceSource["getDocument"]>[];
    readonly table: PriceTable;
  };

  constructor({
    fixedPricesUsd,
    sources,
    onDistrust,
  }: {
    /** Fixed prices by symbol; they take precedence over all sources. */
    readonly fixedPricesUsd: ReadonlyMap<string, number>;
    /** In order of preference. */
    readonly sources: readonly PriceSource[];
    readonly onDistrust?: (event: DistrustEvent) => void;
  }) {
    this.#sources = sources;
    this.#fixedPrices = upperCaseSymbols(fixedPricesUsd);
    this.#judge = new PriceJudge(sources, onDistrust);
    this.#newest = { documents: [], table: this.#createTable([]) };
  }

  async getTable(symbols: readonly string[]): Promise<PriceTable> {
    for (const [index, source] of this.#sources.entries()) {
      if (!this.#isNeeded(source, symbols, index)) continue;
      if (!source.refresh()) {
        const load = source.load();
        const isLast = !this.#sources.slice(index + 1).some((later) => this.#isNeeded(later, symbols, index));
        if (isLast) await this.#awaitLoad(load);
        else if (!(await withTimeoutOrFallback(load.then(isLoaded), MAX_WAIT_MS, false))) source.giveUp();
      }
      // Judges the document: a price that jumped needs the next source.
      this.#getNewestTable();
    }
    for (const [index, source] of this.#sources.entries()) {
      if (source.getDocument() === undefined && this.#isNeeded(source, symbols, index) && this.#isIncomplete(symbols))
        await this.#awaitLoad(source.load());
    }
    return this.#getNewestTable();
  }

  peekTable(symbols: readonly string[]): PriceTable | undefined {
    let hasUnloaded = false;
    for (const [index, source] of this.#sources.entries()) {
      if (this.#isNeeded(source, symbols, index)) {
        if (!source.refresh()) return undefined;
        this.#getNewestTable();
        hasUnloaded ||= source.getDocument() === undefined;
      } else if (this.#isNeeded(source, symbols, 0)) source.refreshInBackground();
    }
    // Whoever waits for a source that has just failed may be the first to get its next answer.
    return hasUnloaded && this.#isIncomplete(symbols) ? undefined : this.#getNewestTable();
  }

  async getUsdPrice(symbol: string): Promise<number> {
    return (await this.getTable([symbol])).getUsdPrice(symbol);
  }

  /**
   * Compares the sources with each other. Reads nothing.
   * @returns also the upper-case symbols of the tokens about which the preferred source is not believed
   */
  compareSources() {
    // A document that is compared without being judged would hide its jumps from the next one.
    this.#getNewestTable();
    return { comparisons: this.#judge.compare(), distrustedTokens: this.#judge.listDistrusted() };
  }

  /** Symbols are those of the SDK, and its aliases of them: there are few. */
  #getToken(symbol: string): PricedToken {
    const known = this.#tokens.get(symbol);
    if (known !== undefined) return known;
    const name = PRICE_ALIASES[symbol] ?? symbol;
    const key = name.toUpperCase();
    const fixedUsd = this.#fixedPrices.get(symbol.toUpperCase()) ?? this.#fixedPrices.get(key);
    const token = { name, key, fixedUsd: fixedUsd === undefined ? undefined : roundLikeSdk(name, fixedUsd) };
    this.#tokens.set(symbol, token);
    return token;
  }

  #createTable(documents: readonly ReturnType<PriceSource["getDocument"]>[]): PriceTable {
    const findPriced = ({ name, key }: PricedToken) => {
      for (const [index, source] of this.#sources.entries()) {
        const document = documents[index];
        const usd = document && this.#findUsablePrice(source, key, document);
        if (document !== undefined && usd !== undefined) return { source, document, usd };
      }
      const jump = this.#judge.listDistrusted().includes(key)
        ? ": it jumped in one source, and no other confirms it"
        : "";
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${name}${jump}`);
    };
    return {
      getUsdPrice: (symbol) => {
        const token = this.#getToken(symbol);
        return token.fixedUsd ?? roundLikeSdk(token.name, findPriced(token).usd);
      },
      getOrigin: (symbol) => {
        const token = this.#getToken(symbol);
        if (token.fixedUsd !== undefined) return FIXED_ORIGIN;
        const { source, document } = findPriced(token);
        const updatedAtSeconds = Math.floor(source.getUpdatedAt(token.key, document) / 1000);
        return { source: source.name, updatedAtSeconds };
      },
    };
  }

  /** Returns a price that is current and believed; undefined: the source has none. */
  #findUsablePrice(source: PriceSource, key: string, document = source.getDocument()): number | undefined {
    const usd = source.findPrice(key, document);
    return usd === undefined || this.#judge.isDistrusted(source, key, usd) ? undefined : usd;
  }

  /** Returns the table of the newest documents: the same one until a source has a newer document. */
  #getNewestTable(): PriceTable {
    const { documents, table } = this.#newest;
    const isTabled = (source: PriceSource, index: number): boolean => source.getDocument() === documents[index];
    if (this.#sources.length === documents.length && this.#sources.every(isTabled)) return table;
    const newestDocuments = this.#sources.map((source) => source.getDocument());
    this.#newest = { documents: newestDocuments, table: this.#createTable(newestDocuments) };
    this.#judge.update();
    return this.#newest.table;
  }

  /** Waits for the last source that may have a price; to confirm a jump no longer than a call has time for an honest error. */
  async #awaitLoad(load: Promise<void>): Promise<void> {
    if (this.#judge.hasDistrusted()) await withTimeoutOrFallback(load, MAX_CONFIRMATION_WAIT_MS, undefined);
    else await load;
  }

  /** Returns whether a token needs a price and none of the first sources has it. */
  #isUnpriced({ key, fixedUsd }: PricedToken, sourceCount: number): boolean {
    if (fixedUsd !== undefined) return false;
    for (let index = 0; index < sourceCount; index++) {
      const source = this.#sources[index];
      if (source !== undefined && this.#findUsablePrice(source, key) !== undefined) return false;
    }
    return true;
  }

  /** Returns whether a source may have a price that is needed and that none of the sources before it has. */
  #isNeeded(source: PriceSource, symbols: readonly string[], sourcesBefore: number): boolean {
    for (const symbol of symbols) {
      const token = this.#getToken(symbol);
      if (source.mayPrice(token.key) && this.#isUnpriced(token, sourcesBefore)) return true;
    }
    return false;
  }

  #isIncomplete(symbols: readonly string[]): boolean {
    return symbols.some((symbol) => this.#isUnpriced(this.#getToken(symbol), this.#sources.length));
  }
}

const isLoaded = (): boolean => true;

/** Rounds USDC and USDT to six decimals before use, as the SDK does. */
function roundLikeSdk(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}
