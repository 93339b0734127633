import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { networkOf } from "../src/hop/networks.js";
import { startAssetsServer } from "./assets-server.js";
import { cacheFolder } from "./cache/project-folders.js";
import { openState, type SavedState, saveState, stateName } from "./cache/saved-state.js";
import { type Anvil, startAnvil } from "./chain/anvil.js";
import { chainIdOf, connectChains, gasPriceOn, hopChains } from "./chain/local-chains.js";
import { deployChain } from "./deploy/deploy-chain.js";
import { endAll } from "./run-cleanups.js";
import { pastSeconds, seedChains } from "./seed/seed-chains.js";
import type { SeededTransfer } from "./seed/seeded-transfer.js";
import { type Bonder, createBonder } from "./transfer/bonder.js";

export interface NetworkOptions {
  /** The chains to run, by slug. Default: every chain of the SDK's mainnet address book. */
  readonly slugs?: readonly string[];
  /** Where built states are kept; false: nowhere, build anew. Default: the project's `.devnet`. */
  readonly stateDir?: string | false;
  /** Told what is going on, a line at a time. */
  readonly log?: (line: string) => void;
  /** How long the bonder leaves a new transfer pending, in seconds. */
  readonly bondDelaySeconds?: number;
}

/** A local Hop network: chains with Hop's contracts and a past, and what Hop and Circle serve beside them. */
export interface Network {
  readonly chains: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>;
  readonly assetsUrl: string;
  readonly attestationUrl: string;
  /** What stands on the chains from the start, oldest first. */
  readonly transfers: readonly SeededTransfer[];
  /** Configuration of a gateway over this network. */
  readonly environment: Readonly<Record<string, string>>;
  /** Not started yet. */
  readonly bonder: Bonder;
  /** Ends everything and waits until it is gone. */
  stop(): Promise<void>;
}

/** Nobody listens there. For the chains that do not run here: their public endpoints would be asked otherwise. */
const nowhere = "http://127.0.0.1:1";

/**
 * Starts the network. The first start builds it (deploys, then makes a past of some days) and keeps the state; every
 * start runs from a kept state, so that the first is no different from the others.
 */
export async function startNetwork(options: NetworkOptions = {}): Promise<Network> {
  const { slugs = [...hopChains.keys()], stateDir = cacheFolder(), log = () => {}, bondDelaySeconds } = options;
  const stops: (() => Promise<unknown>)[] = [];
  // What was started last needs what was started first.
  const stop = (): Promise<void> => endAll(stops.splice(0).reverse());
  try {
    const { state, forget } = await keptOrBuilt(slugs, stateDir, log);
    const anvils = await startAll(slugs, (slug) => ({ stateFile: state.chainFile(slug) })).finally(forget);
    stops.push(() => stopAll(anvils));
    const chains = connectChains(Object.fromEntries(anvils));
    // A first block of today: a chain whose head is days old would look stuck.
    await Promise.all([...chains.values()].map(({ rpc }) => rpc("evm_mine")));

    const assets = await startAssetsServer();
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
        ...rpcUrls("RPC_URL_", hopChains.keys(), anvils),
        ...rpcUrls("GOERLI_RPC_URL_", networkOf("goerli").chains.keys(), new Map()),
        ASSETS_URL: assets.url,
        ATTESTATION_API_URL: assets.url,
        EXPLORER_API_URL: "off",
        CUSTOM_RPC_URLS: "any",
      },
      bonder,
      stop,
    };
  } catch (error) {
    // What went wrong first is what there is to tell.
    await stop().catch(() => {});
    throw error;
  }
}

function rpcUrls(
  prefix: string,
  slugs: Iterable<string>,
  anvils: ReadonlyMap<string, Anvil>,
): Readonly<Record<string, string>> {
  const urls = [...slugs].map((slug) => [`${prefix}${slug.toUpperCase()}`, anvils.get(slug)?.url ?? nowhere] as const);
  return Object.fromEntries(urls);
}

async function keptOrBuilt(
  slugs: readonly string[],
  stateDir: string | false,
  log: (line: string) => void,
): Promise<{ state: SavedState; forget: () => Promise<void> }> {
  const parent = stateDir === false ? await mkdtemp(join(tmpdir(), "hop-network-")) : stateDir;
  const forget = async (): Promise<void> => {
    if (stateDir === false) await rm(parent, { recursive: true, force: true });
  };
  const folder = join(parent, stateDir === false ? randomUUID() : await stateName(slugs));
  const kept = await openState(folder);
  if (kept !== undefined) return { state: kept, forget };
  try {
    await mkdir(parent, { recursive: true });
    await build(folder, slugs, log);
    const state = await openState(folder);
    if (state === undefined) throw new Error("the built state is gone");
    return { state, forget };
  } catch (error) {
    await forget();
    throw error;
  }
}

async function build(folder: string, slugs: readonly string[], log: (line: string) => void): Promise<void> {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const anvils = await startAll(slugs, () => ({ timestamp: nowSeconds - pastSeconds }));
  try {
    const chains = connectChains(Object.fromEntries(anvils));
    log("deploying Hop's contracts");
    await Promise.all([...chains.values()].map(deployChain));
    log("sending transfers");
    const transfers = await seedChains(chains, nowSeconds);
    await saveState(folder, chains, transfers);
  } finally {
    await stopAll(anvils);
  }
}

type Start = Pick<Parameters<typeof startAnvil>[0], "timestamp" | "stateFile">;

async function startAll(slugs: readonly string[], start: (slug: string) => Start): Promise<ReadonlyMap<string, Anvil>> {
  const starts = slugs.map(async (slug) => {
    const anvil = await startAnvil({ chainId: chainIdOf(slug), gasPrice: gasPriceOn(slug), ...start(slug) });
    return [slug, anvil] as const;
  });
  const results = await Promise.allSettled(starts);
  const anvils = new Map(results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])));
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return anvils;
  await stopAll(anvils).catch(() => {});
  throw failed.reason;
}

function stopAll(anvils: ReadonlyMap<string, Anvil>): Promise<void> {
  return endAll([...anvils.values()].map((anvil) => anvil.stop));
}
