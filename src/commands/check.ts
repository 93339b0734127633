import { Agent } from "undici";
import { checkPeers } from "../chain/diagnose/diagnose-endpoints.js";
import { type Config, loadConfig } from "../config/config.js";
import { type BridgeBook, createBridgeBook } from "../hop/contract-registry.js";
import { type Chain, type NetworkSlug, networkOf } from "../hop/networks.js";
import { topics } from "../hop/transfer-events.js";
import { steadyNow } from "../resilience/clock.js";
import { createLimit } from "../resilience/fetch-json.js";
import { type CheckedChain, formatTable, isServed } from "./check-table.js";
import { judge } from "./endpoint-assessment.js";

export interface CheckOptions {
  readonly network: NetworkSlug;
  /** Whether to print for machines. */
  readonly isJson: boolean;
  /** Longest time for all of it, in milliseconds. */
  readonly timeoutMs: number;
}

/** Longest time for one request: who takes longer than that is as good as away. */
const longestAttemptMs = 5_000;
/** Steps of a check: all endpoints of a chain say which it is, then their heads, then what they can do. */
const steps = 3;
const connectMs = 3_000;
/** No transfer has this id: a search for it finds nothing. */
const nobodysId = `0x${"0".repeat(64)}`;

/**
 * Asks every configured endpoint of a network's chains what it can do, and prints it.
 * @returns the exit code: 0 when every chain is served and no endpoint serves another chain, else 1
 */
export async function checkEndpoints(
  { network: slug, isJson, timeoutMs }: CheckOptions,
  environment: NodeJS.ProcessEnv,
  output: { write(text: string): unknown },
): Promise<number> {
  const config = loadConfig(environment);
  const limit = createLimit(new AbortController().signal, timeoutMs);
  const dispatcher = new Agent({ connect: { timeout: connectMs } });
  const network = networkOf(slug);
  const book = createBridgeBook(network);
  try {
    const chains = await Promise.all([...network.chains.values()].map(checkChain));
    output.write(
      isJson ? inJson(slug, chains) : formatTable(chains, slug === "mainnet" ? "RPC_URL_" : "GOERLI_RPC_URL_"),
    );
    return isGood(chains) ? 0 : 1;
  } finally {
    limit.end();
    await dispatcher.destroy();
  }

  async function checkChain(chain: Chain): Promise<CheckedChain> {
    const { chainId, multicall } = chain;
    const options = {
      chainId,
      multicall,
      urls: urlsOf(config, slug, chain),
      filter: filterFor(book, chain),
      dispatcher,
      // One that never answers leaves the others their time.
      attemptMs: Math.min(longestAttemptMs, timeoutMs / steps),
      now: steadyNow,
      wallNow: Date.now,
    };
    const reports = await checkPeers(options, limit.signal);
    const expected = { chainId, hasMulticall: multicall !== undefined };
    return {
      slug: chain.slug,
      chainId,
      endpoints: reports.map((report) => ({ report, verdict: judge(report, expected) })),
    };
  }
}

function urlsOf({ rpcUrls }: Config, network: NetworkSlug, { slug }: Chain): readonly string[] {
  return rpcUrls[network].get(slug) ?? [];
}

/** As the service searches for the transfer of an id. */
function filterFor(book: BridgeBook, chain: Chain) {
  const address = [...book.senders(chain).keys()];
  return { address, topics: [[topics.transferSent, topics.withdrawalBonded], nobodysId] };
}

function isGood(chains: readonly CheckedChain[]): boolean {
  const isMisnamed = ({ endpoints }: CheckedChain): boolean =>
    endpoints.some(({ verdict }) => verdict.problems.includes("wrong chain"));
  return chains.every(isServed) && !chains.some(isMisnamed);
}

function inJson(network: NetworkSlug, chains: readonly CheckedChain[]): string {
  const listed = chains.map((chain) => ({
    chain: chain.slug,
    chainId: chain.chainId,
    usable: isServed(chain),
    endpoints: chain.endpoints.map(({ report: { name, logBlocks, ...found }, verdict }) => ({
      endpoint: name,
      usable: verdict.isUsable,
      problems: verdict.problems,
      verdict: verdict.words,
      ...found,
      // JSON knows no infinity.
      ...(logBlocks === undefined ? {} : { logBlocks: logBlocks === Number.POSITIVE_INFINITY ? "all" : logBlocks }),
    })),
  }));
  return `${JSON.stringify({ network, ok: isGood(chains), chains: listed }, undefined, 2)}\n`;
}
