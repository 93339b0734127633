import { getNetwork } from "../../../src/hop/networks.js";
import type { AttackedChains } from "../../../test/support/attacks/attacked-chains.js";
import { POLITE_ADDRESS } from "../../../test/support/attacks/caller-addresses.js";
import { createLatencySamples, type LatencySamples } from "../../../test/support/attacks/latency-samples.js";
import { type GetResult, QUOTE_PATH, sendGet } from "../../../test/support/attacks/send-get.js";
import { addPendingTransferFromL1, forgeCompletions, unknownHash } from "./attacked-transfers.js";

// Requests that cost the operator's endpoints, or somebody else's, more than they cost the caller.

/** What one request cost. */
export interface UpstreamCost {
  readonly status: number;
  readonly reason: string;
  /** HTTP requests to the chains, also of work that went on after the response. */
  readonly requests: number;
}

/** After this time without a request, no work goes on. */
const QUIET_MS = 1_500;
const MAX_WAIT_MS = 30_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const statusPath = (query: string): string => `/v1/transfer-status?${query}`;

/** Waits until the service asks the chains for nothing more. */
async function waitForQuiet(chains: AttackedChains): Promise<void> {
  let count = -1;
  for (const began = performance.now(); performance.now() - began < MAX_WAIT_MS; await sleep(QUIET_MS)) {
    if (count === chains.requestCount()) return;
    count = chains.requestCount();
  }
}

async function measureCost(port: number, path: string, chains: AttackedChains): Promise<UpstreamCost> {
  chains.reset();
  const { status, body } = await sendGet(port, path);
  await waitForQuiet(chains);
  return { status, reason: readReason(body), requests: chains.requestCount() };
}

/** Asks twice for a transfer ID that no chain has. */
export async function lookUpUnknownId(port: number, chains: AttackedChains): Promise<readonly UpstreamCost[]> {
  const path = statusPath(`transferId=${unknownHash(1)}`);
  return [await measureCost(port, path, chains), await measureCost(port, path, chains)];
}

/** Asks three times at once after each other for a transaction that no chain has. */
export async function lookUpUnknownHash(port: number, chains: AttackedChains): Promise<readonly UpstreamCost[]> {
  const costs: UpstreamCost[] = [];
  for (let count = 0; count < 3; count += 1) {
    chains.reset();
    const { status, body } = await sendGet(port, statusPath(`transactionHash=${unknownHash(2)}`));
    costs.push({ status, reason: readReason(body), requests: chains.callCount("eth_getTransactionReceipt") });
  }
  return costs;
}

export interface ForgedReceiptCost {
  /** `eth_getLogs` at the operator's endpoints, less two for each look-up of the other caller. */
  readonly logSearches: number;
  readonly status: number;
  readonly reason: string;
  /** Latencies of another caller's look-ups meanwhile. */
  readonly others: LatencySamples;
  /** Statuses of those look-ups. */
  readonly otherStatuses: readonly number[];
}

/** Asks for a transaction whose receipt, from the caller's own endpoint, needs many searches on the operator's. */
export async function lookUpForgedReceipt(
  port: number,
  operator: AttackedChains,
  attacker: AttackedChains,
  completions: number,
): Promise<ForgedReceiptCost> {
  const hash = forgeCompletions(attacker, operator, completions);
  const others = createLatencySamples();
  const otherStatuses: number[] = [];
  const endpoint = `rpcUrl[optimism]=${encodeURIComponent(attacker.urlOf("optimism"))}`;
  operator.reset();
  let isOver = false;
  const attack = sendGet(port, statusPath(`transactionHash=${hash}&${endpoint}`)).finally(() => {
    isOver = true;
  });
  const pending: Promise<void>[] = [];
  for (let index = 0; !isOver || index < 5; index += 1, await sleep(200)) {
    // These search the logs of the same chain as the attack does.
    const path = statusPath(`transactionHash=${addPendingTransferFromL1(operator, 100_000 + index)}`);
    const lookup = sendGet(port, path, POLITE_ADDRESS).then(({ status, tookMs }) => {
      others.add(tookMs);
      otherStatuses.push(status);
    });
    pending.push(lookup);
  }
  const { status, body } = await attack;
  await Promise.all(pending);
  await waitForQuiet(operator);
  const logSearches = operator.callCount("eth_getLogs") - 2 * others.count;
  return { logSearches, status, reason: readReason(body), others, otherStatuses };
}

export interface HostCost {
  readonly requests: number;
  readonly connections: number;
  readonly result: GetResult;
}

/** Names one host for the endpoints of all chains. */
export async function nameOneHost(port: number, host: AttackedChains): Promise<HostCost> {
  const endpoints = [...getNetwork("mainnet").chains.keys()].map(
    (slug) => `rpcUrl[${slug}]=${encodeURIComponent(host.urlOf(slug))}`,
  );
  host.reset();
  const result = await sendGet(port, statusPath([`transactionHash=${unknownHash(3)}`, ...endpoints].join("&")));
  await sleep(QUIET_MS);
  return { requests: host.requestCount(), connections: host.connectionCount(), result };
}

export interface SlowChainsResult {
  readonly quote: GetResult;
  readonly status: GetResult;
}

/** Asks for a quote and a status. @param hash of a transaction with a transfer */
export async function askSlowChains(port: number, hash: string): Promise<SlowChainsResult> {
  const [quote, status] = await Promise.all([
    sendGet(port, `${QUOTE_PATH}25000000`),
    sendGet(port, statusPath(`transactionHash=${hash}`)),
  ]);
  return { quote, status };
}

/** Returns the error reason in a body; "" without one. */
function readReason(body: string): string {
  return /"reason":"(\w+)"/.exec(body)?.[1] ?? "";
}
