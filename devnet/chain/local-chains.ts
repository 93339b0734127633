import { sdkConfig } from "@hop-protocol/sdk/config";
import { getNetwork } from "../../src/hop/networks.js";
import { createJsonRpc, type JsonRpc } from "./json-rpc.js";

/** A running local chain. */
export interface LocalChain {
  readonly slug: string;
  readonly chainId: number;
  readonly rpc: JsonRpc;
}

export type LocalChains = ReadonlyMap<string, LocalChain>;

/** The chains of the SDK's mainnet address book, by slug, in its order. */
export const hopChains = getNetwork("mainnet").chains;

const GWEI = 1_000_000_000n;

const GAS_PRICES: Readonly<Record<string, bigint>> = { ethereum: 10n * GWEI, polygon: 40n * GWEI, gnosis: 2n * GWEI };

/** Returns the gas price of a local chain in wei: about that of the real chain, the same on every run. */
export function getGasPrice(slug: string): bigint {
  return GAS_PRICES[slug] ?? GWEI / 20n;
}

/** Returns the running chains at these URLs. */
export function connectChains(
  urls: Readonly<Record<string, { readonly chainId: number; readonly url: string }>>,
): LocalChains {
  const chains = Object.entries(urls).map(([slug, { chainId, url }]) => ({ slug, chainId, rpc: createJsonRpc(url) }));
  return new Map(chains.map((chain) => [chain.slug, chain]));
}

/** Returns the running chain with this slug. */
export function getLocalChain(chains: LocalChains, slug: string): LocalChain {
  const chain = chains.get(slug);
  if (chain === undefined) throw new Error(`chain ${slug} is not running`);
  return chain;
}

/** Returns the chain id of a Hop chain. */
export function getChainId(slug: string): number {
  const chain = hopChains.get(slug);
  if (chain === undefined) throw new Error(`unknown Hop chain ${slug}`);
  return chain.chainId;
}

/** Returns the slug of a chain id. */
export function getSlugByChainId(chainId: number): string {
  for (const chain of hopChains.values()) if (chain.chainId === chainId) return chain.slug;
  throw new Error(`no Hop chain has the id ${chainId}`);
}

/** Returns the address of a token's contract by its name in the SDK's address book; undefined if the token has none there. */
export function findContract(token: string, slug: string, name: string): string | undefined {
  const address = getNetwork("mainnet").contracts.get(token)?.get(slug)?.[name];
  return typeof address === "string" ? address : undefined;
}

/** Like {@link findContract}, but throws if there is none. */
export function getContract(token: string, slug: string, name: string): string {
  const address = findContract(token, slug, name);
  if (address === undefined) throw new Error(`${token} has no ${name} on ${slug}`);
  return address;
}

/** Returns the SDK's bonder of a route. */
export function getBonder(token: string, source: string, destination: string): string {
  const bonders: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
  const bonder = bonders[token]?.[source]?.[destination];
  if (bonder === undefined) throw new Error(`the SDK names no bonder of ${token} from ${source} to ${destination}`);
  // One of the SDK's addresses ends in a space.
  return bonder.trim();
}

/** Returns the address of Multicall3 on a chain. */
export function getMulticallAddress(slug: string): string {
  const chains: Record<string, { readonly multicall: string } | undefined> = sdkConfig.mainnet.chains;
  const address = chains[slug]?.multicall;
  if (address === undefined) throw new Error(`the SDK knows no Multicall3 on ${slug}`);
  return address;
}

/** Returns whether a token is the native coin of a chain, which is sent as transaction value. */
export function isNativeCoin(token: string, slug: string): boolean {
  const { nativeToken } = hopChains.get(slug) ?? {};
  return nativeToken === token || (nativeToken === "XDAI" && token === "DAI");
}
