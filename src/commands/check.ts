import { diagnoseEndpoints } from "../chain/diagnose/diagnose-endpoints.js";
import { createEndpointNamer } from "../chain/endpoints/endpoint-name.js";
import { loadConfig } from "../config/config.js";
import { ContractRegistry } from "../hop/contract-registry.js";
import { type Chain, getNetwork, type NetworkSlug } from "../hop/networks.js";
import { EVENT_TOPICS } from "../hop/transfer-events.js";
import { createAbortScope } from "../resilience/abort-scope.js";
import { monotonicNow } from "../resilience/clock.js";
import { Agent } from "../resilience/http-client/undici.js";
import { checkClock, checkDependencies } from "./check-dependencies.js";
import {
  type CheckedChain,
  type CheckedEndpoint,
  type DependencyReport,
  formatCheckTable,
  isChainServed,
  suggestRpcBudget,
} from "./check-table.js";
import { assessEndpoint } from "./endpoint-assessment.js";

/** Time limit of one request. An endpoint that takes longer counts as unreachable. */
const MAX_ATTEMPT_MS = 5_000;
/** Consecutive steps of a check: chain id, head, capabilities. */
const CHECK_STEPS = 3;
const CONNECT_TIMEOUT_MS = 3_000;
/** A transfer id that does not exist, so a log search for it returns nothing. */
const UNUSED_TRANSFER_ID = `0x${"0".repeat(64)}`;

/**
 * Tests every configured endpoint of a network's chains, and what else the service uses, and prints a report.
 * @param isJson whether to print JSON instead of a table
 * @param timeoutMs total time limit in milliseconds
 * @returns the exit code: 0 when every chain is served, no endpoint serves another chain and nothing fails without which the
 *   service does not work, else 1
 */
export async function checkEndpoints(
  {
    network: slug,
    isJson,
    timeoutMs,
  }: { readonly network: NetworkSlug; readonly isJson: boolean; readonly timeoutMs: number },
  environment: NodeJS.ProcessEnv,
  output: { write(text: string): unknown },
): Promise<number> {
  const config = loadConfig(environment);
  const abortScope = createAbortScope(new AbortController().signal, timeoutMs);
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const network = getNetwork(slug);
  const registry = new ContractRegistry(network);
  const nameEndpoint = createEndpointNamer();
  try {
    const [chains, others] = await Promise.all([
      Promise.all([...network.chains.values()].map(checkChain)),
      checkDependencies(config, slug, Math.min(MAX_ATTEMPT_MS, timeoutMs)),
    ]);
    const dependencies = slug === "mainnet" ? [...others, checkClock(chains, config)] : others;
    const prefix = slug === "mainnet" ? "RPC_URL_" : "GOERLI_RPC_URL_";
    const isPassed =
      hasPassed(chains) && !others.some(({ state, isNeeded }) => state === "failing" && isNeeded === true);
    output.write(
      isJson ? formatCheckJson(slug, isPassed, chains, dependencies) : formatCheckTable(chains, dependencies, prefix),
    );
    return isPassed ? 0 : 1;
  } finally {
    abortScope.cancel();
    await dispatcher.destroy();
  }

  async function checkChain(chain: Chain): Promise<CheckedChain> {
    const { chainId, multicallAddress } = chain;
    const options = {
      slug: chain.slug,
      chainId,
      nameEndpoint,
      multicall: multicallAddress,
      urls: config.rpcUrls[slug].get(chain.slug) ?? [],
      filter: createTransferFilter(registry, chain),
      dispatcher,
      // An endpoint that never responds must leave enough time for the following steps.
      attemptTimeoutMs: Math.min(MAX_ATTEMPT_MS, timeoutMs / CHECK_STEPS),
      now: monotonicNow,
      wallNow: Date.now,
    };
    const reports = await diagnoseEndpoints(options, abortScope.signal);
    const endpoints = reports.map((report) => ({ report, assessment: assessEndpoint(report, chain) }));
    return { slug: chain.slug, chainId, endpoints };
  }
}

/** Builds the log filter that the service uses to find a transfer by its id. */
function createTransferFilter(registry: ContractRegistry, chain: Chain) {
  const address = [...registry.getSendingContracts(chain).keys()];
  return { address, topics: [[EVENT_TOPICS.transferSent, EVENT_TOPICS.withdrawalBonded], UNUSED_TRANSFER_ID] };
}

function hasPassed(chains: readonly CheckedChain[]): boolean {
  const servesWrongChain = ({ endpoints }: CheckedChain): boolean =>
    endpoints.some(({ assessment }) => assessment.problems.includes("wrong chain"));
  return chains.every(isChainServed) && !chains.some(servesWrongChain);
}

function formatCheckJson(
  network: NetworkSlug,
  isPassed: boolean,
  chains: readonly CheckedChain[],
  dependencies: readonly DependencyReport[],
): string {
  const report = {
    network,
    ok: isPassed,
    suggestedRpcBudget: suggestRpcBudget(chains)?.callsPerSecond,
    chains: chains.map((chain) => ({
      chain: chain.slug,
      chainId: chain.chainId,
      usable: isChainServed(chain),
      endpoints: chain.endpoints.map(toEndpointJson),
    })),
    dependencies,
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

/** Builds the JSON of an endpoint. Its keys are public; unknown values are omitted. */
function toEndpointJson({ report, assessment }: CheckedEndpoint): object {
  return {
    endpoint: report.name,
    usable: assessment.isUsable,
    problems: assessment.problems,
    verdict: assessment.summary,
    trouble: report.trouble,
    chainId: report.chainId,
    head: report.head,
    lag: report.lag,
    latencyMs: report.latencyMs,
    contracts: report.contracts,
    batch: report.batch,
    // JSON has no infinity.
    callsAtOnce: report.callsAtOnce,
    logBlocks: report.logBlocks === Number.POSITIVE_INFINITY ? "all" : report.logBlocks,
  };
}
