import { createHash } from "node:crypto";
import type { ChainClient } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import { FeeSettingsSource } from "../../hop/fee-settings.js";
import { isCctpSymbol } from "../../hop/tokens.js";
import type { PriceTable, TokenPrices } from "../../prices/token-prices.js";
import { AdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import { SdkEngine } from "../sdk-engine.js";
import { SnapshotEngine } from "../snapshot-engine.js";
import type { QuoteRequest } from "../state/quote-request.js";
import { type ChainPin, RecordedChains } from "./chain-recording.js";
import {
  type ComparisonCase,
  type ComparisonInputs,
  listDifferences,
  type PrintedQuote,
  printRequest,
  toPrintedQuote,
} from "./comparison-case.js";

/** What both engines quote from. */
export interface ComparisonSources {
  /** The chains of the request's network. */
  readonly chains: NetworkChainClients;
  readonly settings: FeeSettings;
  readonly prices: Pick<TokenPrices, "getTable">;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
}

/** The inputs of one quote: with them, both engines compute the same again. */
export interface PinnedSources {
  readonly inputs: ComparisonInputs;
  /** At one block each. */
  readonly chains: NetworkChainClients;
  readonly prices: TokenPrices;
  /** Returns Circle's attestation of a CCTP message; undefined: there is none. */
  readonly findAttestation: (messageHash: string) => Promise<string | undefined>;
}

/** Long enough for one quote from anything that answers. */
const MAX_AGE_MS = 600_000;
const ID_DIGITS = 12;
const CALLER = "comparison";

/**
 * Quotes a request with both engines at one block of each chain.
 * @returns both quotes with all that they were computed from
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a chain or another source does not respond
 */
export async function compareEngines(
  request: QuoteRequest,
  { chains, settings, prices, attestations }: ComparisonSources,
  versions: ComparisonCase["versions"],
  signal: AbortSignal,
): Promise<ComparisonCase> {
  const routeChains = [request.source, request.destination];
  const pins = await Promise.all(
    routeChains.map(async ({ slug }) => [slug, await readPin(chains.getClient(slug), signal)] as const),
  );
  const recordedChains = new RecordedChains(chains, new Map(pins));
  const pricesUsd: Record<string, number> = {};
  const foundAttestations: Record<string, string | null> = {};
  const inputs: ComparisonInputs = {
    nowSeconds: Math.floor(Date.now() / 1_000),
    settings,
    pricesUsd,
    attestations: foundAttestations,
  };
  async function findAttestation(hash: string): Promise<string | undefined> {
    foundAttestations[hash] ??= (await attestations?.find(hash)) ?? null;
    return foundAttestations[hash] ?? undefined;
  }
  const recordedPrices = await recordPrices(request, prices, pricesUsd);
  const sources = { inputs, chains: recordedChains, prices: recordedPrices, findAttestation };
  const servedQuote = await computeQuote(request, sources, signal);
  const sdkQuote = await computeSdkQuote(request, sources, signal);
  const printedRequest = printRequest(request);
  const digest = createHash("sha256").update(JSON.stringify([printedRequest, inputs, servedQuote, sdkQuote]));
  return {
    id: digest.digest("hex").slice(0, ID_DIGITS),
    foundAt: new Date().toISOString(),
    versions,
    request: printedRequest,
    servedQuote,
    sdkQuote,
    inputs,
    chains: recordedChains.listRecordings(),
  };
}

export function isEqual({ servedQuote, sdkQuote }: ComparisonCase): boolean {
  return listDifferences(servedQuote, sdkQuote).length === 0;
}

/** Computes a quote with all intermediate values, as the service does for its callers. */
export async function computeQuote(
  request: QuoteRequest,
  sources: PinnedSources,
  signal: AbortSignal,
): Promise<PrintedQuote> {
  const requester = { caller: CALLER, signal };
  const engine = new SnapshotEngine({
    ...createEngineSources(sources),
    maxAgeMs: MAX_AGE_MS,
    maxStaleMs: MAX_AGE_MS,
    clocks: { now: () => sources.inputs.nowSeconds * 1_000, monotonicNow: () => 0 },
  });
  try {
    const fullRequest = { ...request, isFull: true };
    // Reads the ticks of Uniswap's pool, which the first read of a chain only finds out.
    if (request.token.symbol === "USDC.e") await engine.quote({ ...fullRequest, receiveAmount: 1n }, requester);
    const { quote } = await engine.quote(fullRequest, requester);
    return toPrintedQuote(quote);
  } catch (error) {
    return printRefusal(error);
  } finally {
    engine.close();
  }
}

/** Computes the same with the SDK. */
export async function computeSdkQuote(
  request: QuoteRequest,
  sources: PinnedSources,
  signal: AbortSignal,
): Promise<PrintedQuote> {
  const engine = new SdkEngine({
    ...createEngineSources(sources),
    limiter: new AdaptiveLimiter(() => 0),
  });
  try {
    return toPrintedQuote(await engine.quoteAtTime(request, sources.chains, sources.inputs.nowSeconds, signal));
  } catch (error) {
    return printRefusal(error);
  }
}

function createEngineSources({ inputs, chains, prices, findAttestation }: PinnedSources) {
  return {
    settings: FeeSettingsSource.of(inputs.settings),
    prices,
    attestations: { find: findAttestation },
    chains: () => chains,
  };
}

/** Returns what to compare where an engine refuses the amount; rethrows any other error. */
function printRefusal(error: unknown): PrintedQuote {
  if (error instanceof ServiceError && error.reason === "INVALID_PARAMETER") return { refused: error.message };
  throw error;
}

/** Reads the newest block and the gas price. */
async function readPin(client: ChainClient, signal: AbortSignal): Promise<ChainPin> {
  const [head, gasPrice] = await Promise.all([
    client.send("eth_blockNumber", [], signal),
    client.send("eth_gasPrice", [], signal),
  ]);
  return { block: String(head), gasPrice: String(gasPrice) };
}

/** Returns prices that do not change, and adds those that are asked for to a record. */
async function recordPrices(
  { token, destination }: QuoteRequest,
  prices: ComparisonSources["prices"],
  record: Record<string, number>,
): Promise<TokenPrices> {
  const table = await prices.getTable([isCctpSymbol(token.symbol) ? "USDC" : token.symbol, destination.nativeToken]);
  function getUsdPrice(symbol: string): number {
    const usd = table.getUsdPrice(symbol);
    record[symbol] = usd;
    return usd;
  }
  const recordedTable: PriceTable = { getUsdPrice, getOrigin: table.getOrigin };
  return {
    getTable: async () => recordedTable,
    peekTable: () => recordedTable,
    getUsdPrice: async (symbol) => getUsdPrice(symbol),
  };
}
