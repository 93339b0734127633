import { ServiceError } from "../errors.js";
import { withTimeout } from "../resilience/with-timeout.js";
import { createPriceJudge, type PriceComparison, type PriceJudgeOptions } from "./price-comparison.js";
import { type PriceDocument, upperCaseSymbols } from "./price-document.js";
import { findSourcePrice, type PriceSource } from "./price-source.js";

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

export interface ComparedTokenPrices extends TokenPrices {
  /** Compares the sources with each other. Reads nothing. */
  compareSources(): SourceComparison;
}

export interface SourceComparison {
  readonly comparisons: readonly PriceComparison[];
  /** Upper-case symbols of the tokens about which the preferred source is not believed. */
  readonly distrustedTokens: readonly string[];
}

export interface TokenPricesOptions {
  /** Fixed prices by symbol; they take precedence over all sources. */
  readonly fixedPricesUsd: ReadonlyMap<string, number>;
  /** In order of preference. */
  readonly sources: readonly PriceSource[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onDistrust?: PriceJudgeOptions["onDistrust"];
}

/** How long a source that does not answer is awaited where a later one may have the price. */
const MAX_WAIT_MS = 1_000;

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

interface TableOfDocuments {
  /** By source, in their order. */
  readonly documents: readonly (PriceDocument | undefined)[];
  readonly table: PriceTable;
}

export function createTokenPrices({
  fixedPricesUsd,
  sources,
  now,
  onDistrust,
}: TokenPricesOptions): ComparedTokenPrices {
  const fixedPrices = upperCaseSymbols(fixedPricesUsd);
  const judge = createPriceJudge({ sources, now, ...(onDistrust && { onDistrust }) });
  const tokens = new Map<string, PricedToken>();
  let newest = createTable([]);

  /** Symbols are those of the SDK, and its aliases of them: there are few. */
  function getToken(symbol: string): PricedToken {
    const known = tokens.get(symbol);
    if (known !== undefined) return known;
    const name = PRICE_ALIASES[symbol] ?? symbol;
    const key = name.toUpperCase();
    const fixedUsd = fixedPrices.get(symbol.toUpperCase()) ?? fixedPrices.get(key);
    const token = { name, key, fixedUsd: fixedUsd === undefined ? undefined : roundLikeSdk(name, fixedUsd) };
    tokens.set(symbol, token);
    return token;
  }

  function createTable(documents: readonly (PriceDocument | undefined)[]): TableOfDocuments {
    function findPriced({ name, key }: PricedToken) {
      for (const [index, source] of sources.entries()) {
        const document = documents[index];
        const usd = document && findUsablePrice(source, document, key);
        if (document !== undefined && usd !== undefined) return { source, document, usd };
      }
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no price for ${name}`);
    }
    const table: PriceTable = {
      getUsdPrice(symbol) {
        const token = getToken(symbol);
        return token.fixedUsd ?? roundLikeSdk(token.name, findPriced(token).usd);
      },
      getOrigin(symbol) {
        const token = getToken(symbol);
        if (token.fixedUsd !== undefined) return FIXED_ORIGIN;
        const { source, document } = findPriced(token);
        const updatedAt = document.updatedAt?.get(token.key) ?? document.timestamp;
        return { source: source.name, updatedAtSeconds: Math.floor(updatedAt / 1000) };
      },
    };
    return { documents, table };
  }

  /** Returns a price that is current and believed; undefined: the source has none. */
  function findUsablePrice(source: PriceSource, document: PriceDocument, key: string): number | undefined {
    return judge.isDistrusted(source, key) ? undefined : findSourcePrice(document, key, now());
  }

  /** Returns the table of the newest documents: the same one until a source has a newer document. */
  function getNewestTable(): PriceTable {
    if (sources.length === newest.documents.length && sources.every(isTabled)) return newest.table;
    newest = createTable(sources.map((source) => source.getDocument()));
    judge.update();
    return newest.table;
  }

  function isTabled(source: PriceSource, index: number): boolean {
    return source.getDocument() === newest.documents[index];
  }

  /** Returns whether a token needs a price and none of the first sources has it. */
  function isUnpriced({ key, fixedUsd }: PricedToken, sourceCount: number): boolean {
    if (fixedUsd !== undefined) return false;
    for (let index = 0; index < sourceCount; index++) {
      const source = sources[index];
      const document = source?.getDocument();
      if (source !== undefined && document !== undefined && findUsablePrice(source, document, key) !== undefined)
        return false;
    }
    return true;
  }

  /** Returns whether a source may have a price that is needed and that none of the sources before it has. */
  function isNeeded(source: PriceSource, symbols: readonly string[], sourcesBefore: number): boolean {
    for (const symbol of symbols) {
      const token = getToken(symbol);
      if (source.mayPrice(token.key) && isUnpriced(token, sourcesBefore)) return true;
    }
    return false;
  }

  function peekTable(symbols: readonly string[]): PriceTable | undefined {
    let hasUnloaded = false;
    for (const [index, source] of sources.entries()) {
      if (isNeeded(source, symbols, index)) {
        if (!source.refresh()) return undefined;
        getNewestTable();
        hasUnloaded ||= source.getDocument() === undefined;
      } else if (isNeeded(source, symbols, 0)) source.refreshInBackground();
    }
    // Whoever waits for a source that has just failed may be the first to hear from it again.
    return hasUnloaded && isIncomplete(symbols) ? undefined : getNewestTable();
  }

  function isIncomplete(symbols: readonly string[]): boolean {
    return symbols.some((symbol) => isUnpriced(getToken(symbol), sources.length));
  }

  async function getTable(symbols: readonly string[]): Promise<PriceTable> {
    for (const [index, source] of sources.entries()) {
      if (!isNeeded(source, symbols, index) || source.refresh()) continue;
      const load = source.load();
      const isLast = !sources.slice(index + 1).some((later) => isNeeded(later, symbols, index));
      if (isLast) await load;
      else if (!(await withTimeout(load.then(isLoaded), MAX_WAIT_MS, false))) source.giveUp();
      getNewestTable();
    }
    for (const [index, source] of sources.entries()) {
      if (source.getDocument() === undefined && isNeeded(source, symbols, index) && isIncomplete(symbols))
        await source.load();
    }
    return getNewestTable();
  }

  return {
    getTable,
    peekTable,
    getUsdPrice: async (symbol) => (await getTable([symbol])).getUsdPrice(symbol),
    compareSources: () => ({ comparisons: judge.compare(), distrustedTokens: judge.listDistrusted() }),
  };
}

const isLoaded = (): boolean => true;

/** Rounds USDC and USDT to six decimals before use, as the SDK does. */
function roundLikeSdk(symbol: string, price: number): number {
  return symbol === "USDC" || symbol === "USDT" ? Number(price.toFixed(6)) : price;
}
