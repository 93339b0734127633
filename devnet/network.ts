import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getNetwork } from "../src/hop/networks.js";
import { FEED_CHAINS } from "../src/prices/chainlink-feeds.js";
import { startAssetsServer } from "./assets-server.js";
import { getCacheFolder } from "./cache/project-folders.js";
import { computeStateName, openSavedState, type SavedState, saveChainState } from "./cache/saved-state.js";
import { type Anvil, startAnvil } from "./chain/anvil.js";
import { connectChains, getChainId, getGasPrice, hopChains, type LocalChain } from "./chain/local-chains.js";
import { deployChain } from "./deploy/deploy-chain.js";
import { runCleanups } from "./run-cleanups.js";
import { SEED_HISTORY_SECONDS, seedChains } from "./seed/seed-chains.js";
import type { SeededTransfer } from "./seed/seeded-transfer.js";
import { type Bonder, createBonder } from "./transfer/bonder.js";

export interface LocalNetworkOptions {
  /** The chains to run, by slug. Default: every chain of the SDK's mainnet address book. */
  readonly slugs?: readonly string[];
  /** Folder that caches built states; false: no cache, always build. Default: the project's `.devnet`. */
  readonly stateDir?: string | false;
  /** Called with one line per step. */
  readonly log?: (line: string) => void;
  /** How long the bonder leaves a new transfer pending, in seconds. */
  readonly bondDelaySeconds?: number;
  /**
   * Mines a block on every chain in this interval, in milliseconds, and makes blocks final after two more. Default: blocks are
   * mined for transactions alone, and final after 64.
   */
  readonly blockTimeMs?: number;
}

/** A local Hop network: chains with Hop's contracts and seeded transfers, and the documents that Hop and Circle host. */
export interface LocalNetwork {
  readonly chains: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>;
  readonly assetsUrl: string;
  readonly attestationUrl: string;
  /** The seeded transfers, oldest first. */
  readonly transfers: readonly SeededTransfer[];
  /** Environment that configures a gateway for this network. */
  readonly environment: Readonly<Record<string, string>>;
  /** Not started yet. */
  readonly bonder: Bonder;
  /** Stops everything and waits for it. */
  stop(): Promise<void>;
}

const MINING_INTERVAL_MS = 4 * 60_000;

/** No server listens here. For chains that do not run locally, which would otherwise use public endpoints. */
const UNREACHABLE_URL = "http://127.0.0.1:1";

/**
 * Starts the network. The first start deploys the contracts, seeds transfers of some days and saves the state. Every start,
 * the first included, loads a saved state, so that all behave alike.
 */
export async function startLocalNetwork(options: LocalNetworkOptions = {}): Promise<LocalNetwork> {
  const {
    slugs = [...hopChains.keys()],
    stateDir = getCacheFolder(),
    log = () => {},
    bondDelaySeconds,
    blockTimeMs,
  } = options;
  const stops: (() => Promise<unknown>)[] = [];
  // In reverse order: later parts depend on earlier ones.
  const stop = (): Promise<void> => runCleanups(stops.splice(0).reverse());
  try {
    const { state, discard } = await openOrBuildState(slugs, stateDir, log);
    const slotsInEpoch = blockTimeMs === undefined ? undefined : 1;
    const start = (slug: string) => ({ stateFile: state.chainFile(slug), slotsInEpoch });
    const anvils = await startAnvils(slugs, start).finally(discard);
    stops.push(() => stopAnvils(anvils));
    const chains = connectChains(Object.fromEntries(anvils));
    // Mine one block now: a chain whose head is days old would count as stalled.
    await Promise.all([...chains.values()].map(({ rpc }) => rpc("evm_mine")));

    // Prices from an old block do not count.
    const priced = FEED_CHAINS.flatMap(({ slug }) => chains.get(slug) ?? []);
    stops.push(mineRepeatedly(blockTimeMs === undefined ? priced : [...chains.values()], blockTimeMs));

    const assets = await startAssetsServer(state.transfers.flatMap((transfer) => transfer.unattestedMessageHash ?? []));
    stops.push(assets.stop);
    const delay = bondDelaySeconds === undefined ? {} : { delaySeconds: bondDelaySeconds };
    const bonder = await createBonder({ chains, log, ...delay });
    stops.push(bonder.stop);

    return {
      chains: Object.fromEntries([...anvils].map(([slug, { chainId, url }]) => [slug, { chainId, url }])),
      assetsUrl: assets.url,
      attestationUrl: assets.url,
      transfers: state.transfers,
      environment: {
        ...buildRpcEnvironment("RPC_URL_", hopChains.keys(), anvils),
        ...buildRpcEnvironment("GOERLI_RPC_URL_", getNetwork("goerli").chains.keys(), new Map()),
        ASSETS_URL: assets.url,
        ATTESTATION_API_URL: assets.url,
        EXPLORER_API_URL: "off",
        CUSTOM_RPC_URLS: "any",
        // Local chains only make blocks for transactions.
        MAX_BLOCK_AGE_MS: "0",
      },
      bonder,
      stop,
    };
  } catch (error) {
    // Report the first error, not one of the clean-up.
    await stop().catch(() => {});
    throw error;
  }
}

/** Mines now and then. Returns a function that stops it. */
function mineRepeatedly(chains: readonly LocalChain[], intervalMs = MINING_INTERVAL_MS): () => Promise<void> {
  const timer = setInterval(() => {
    // Fails only while the node shuts down.
    for (const { rpc } of chains) rpc("evm_mine").catch(() => {});
  }, intervalMs).unref();
  return async () => clearInterval(timer);
}

function buildRpcEnvironment(
  prefix: string,
  slugs: Iterable<string>,
  anvils: ReadonlyMap<string, Anvil>,
): Readonly<Record<string, string>> {
  const urls = [...slugs].map(
    (slug) => [`${prefix}${slug.toUpperCase()}`, anvils.get(slug)?.url ?? UNREACHABLE_URL] as const,
  );
  return Object.fromEntries(urls);
}

async function openOrBuildState(
  slugs: readonly string[],
  stateDir: string | false,
  log: (line: string) => void,
): Promise<{ state: SavedState; discard: () => Promise<void> }> {
  const parent = stateDir === false ? await mkdtemp(join(tmpdir(), "hop-network-")) : stateDir;
  const discard = async (): Promise<void> => {
    if (stateDir === false) await rm(parent, { recursive: true, force: true });
  };
  const folder = join(parent, stateDir === false ? randomUUID() : await computeStateName(slugs));
  const saved = await openSavedState(folder);
  if (saved !== undefined) return { state: saved, discard };
  try {
    await mkdir(parent, { recursive: true });
    await buildState(folder, slugs, log);
    const state = await openSavedState(folder);
    if (state === undefined) throw new Error("the built state was deleted");
    return { state, discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

async function buildState(folder: string, slugs: readonly string[], log: (line: string) => void): Promise<void> {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const anvils = await startAnvils(slugs, () => ({ timestamp: nowSeconds - SEED_HISTORY_SECONDS }));
  try {
    const chains = connectChains(Object.fromEntries(anvils));
    log("deploying Hop's contracts");
    await Promise.all([...chains.values()].map(deployChain));
    log("sending transfers");
    const transfers = await seedChains(chains, nowSeconds);
    await saveChainState(folder, chains, transfers);
  } finally {
    await stopAnvils(anvils);
  }
}

type AnvilStartOptions = Pick<Parameters<typeof startAnvil>[0], "timestamp" | "stateFile" | "slotsInEpoch">;

async function startAnvils(
  slugs: readonly string[],
  start: (slug: string) => AnvilStartOptions,
): Promise<ReadonlyMap<string, Anvil>> {
  const starts = slugs.map(async (slug) => {
    const anvil = await startAnvil({ chainId: getChainId(slug), gasPrice: getGasPrice(slug), ...start(slug) });
    return [slug, anvil] as const;
  });
  const results = await Promise.allSettled(starts);
  const anvils = new Map(results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])));
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return anvils;
  await stopAnvils(anvils).catch(() => {});
  throw failed.reason;
}

function stopAnvils(anvils: ReadonlyMap<string, Anvil>): Promise<void> {
  return runCleanups([...anvils.values()].map((anvil) => anvil.stop));
}
