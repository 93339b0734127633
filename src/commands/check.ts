import { Agent } from "undici";
import { diagnoseEndpoints } from "../chain/diagnose/diagnose-endpoints.js";
import { type Config, loadConfig } from "../config/config.js";
import { type ContractRegistry, createContractRegistry } from "../hop/contract-registry.js";
import { type Chain, getNetwork, type NetworkSlug } from "../hop/networks.js";
import { EVENT_TOPICS } from "../hop/transfer-events.js";
import { createAbortScope } from "../resilience/abort-scope.js";
import { monotonicNow } from "../resilience/clock.js";
import { type CheckedChain, formatCheckTable, isChainServed } from "./check-table.js";
import { assessEndpoint } from "./endpoint-assessment.js";

export interface CheckOptions {
  readonly network: NetworkSlug;
  /** Whether to print for machines. */
  readonly isJson: boolean;
  /** Longest time for all of it, in milliseconds. */
  readonly timeoutMs: number;
}

/** Longest time for one request: who takes longer than that is as good as away. */
const MAX_ATTEMPT_MS = 5_000;
/** Steps of a check: all endpoints of a chain say which it is, then their heads, then what they can do. */
const CHECK_STEPS = 3;
const CONNECT_TIMEOUT_MS = 3_000;
/** No transfer has this id: a search for it finds nothing. */
const UNUSED_TRANSFER_ID = `0x${"0".repeat(64)}`;

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
  const limit = createAbortScope(new AbortController().signal, timeoutMs);
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const network = getNetwork(slug);
  const book = createContractRegistry(network);
  try {
    const chains = await Promise.all([...network.chains.values()].map(checkChain));
    output.write(
      isJson
        ? formatCheckJson(slug, chains)
        : formatCheckTable(chains, slug === "mainnet" ? "RPC_URL_" : "GOERLI_RPC_URL_"),
    );
    return hasPassed(chains) ? 0 : 1;
  } finally {
    limit.cancel();
    await dispatcher.destroy();
  }

  async function checkChain(chain: Chain): Promise<CheckedChain> {
    const { chainId, multicallAddress } = chain;
    const options = {
      chainId,
      multicall: multicallAddress,
      urls: selectRpcUrls(config, slug, chain),
      filter: createTransferFilter(book, chain),
      dispatcher,
      // One that never answers leaves the others their time.
      attemptTimeoutMs: Math.min(MAX_ATTEMPT_MS, timeoutMs / CHECK_STEPS),
      now: monotonicNow,
      wallNow: Date.now,
    };
    const reports = await diagnoseEndpoints(options, limit.signal);
    const expected = { chainId, hasMulticall: multicallAddress !== undefined };
    return {
      slug: chain.slug,
      chainId,
      endpoints: reports.map((report) => ({ report, assessment: assessEndpoint(report, expected) })),
    };
  }
}

function selectRpcUrls({ rpcUrls }: Config, network: NetworkSlug, { slug }: Chain): readonly string[] {
  return rpcUrls[network].get(slug) ?? [];
}

/** As the service searches for the transfer of an id. */
function createTransferFilter(book: ContractRegistry, chain: Chain) {
  const address = [...book.getSendingContracts(chain).keys()];
  return { address, topics: [[EVENT_TOPICS.transferSent, EVENT_TOPICS.withdrawalBonded], UNUSED_TRANSFER_ID] };
}

function hasPassed(chains: readonly CheckedChain[]): boolean {
  const isMisnamed = ({ endpoints }: CheckedChain): boolean =>
    endpoints.some(({ assessment }) => assessment.problems.includes("wrong chain"));
  return chains.every(isChainServed) && !chains.some(isMisnamed);
}

function formatCheckJson(network: NetworkSlug, chains: readonly CheckedChain[]): string {
  const listed = chains.map((chain) => ({
    chain: chain.slug,
    chainId: chain.chainId,
    usable: isChainServed(chain),
    endpoints: chain.endpoints.map(({ report: { name, logBlocks, ...found }, assessment }) => ({
      endpoint: name,
      usable: assessment.isUsable,
      problems: assessment.problems,
      verdict: assessment.summary,
      ...found,
      // JSON knows no infinity.
      ...(logBlocks === undefined ? {} : { logBlocks: logBlocks === Number.POSITIVE_INFINITY ? "all" : logBlocks }),
    })),
  }));
  return `${JSON.stringify({ network, ok: hasPassed(chains), chains: listed }, undefined, 2)}\n`;
}
