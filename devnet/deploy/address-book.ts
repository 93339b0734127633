import { sdkConfig } from "@hop-protocol/sdk/config";
import { constants, utils } from "ethers";
import { getNetwork } from "../../src/hop/networks.js";
import { getTokenDecimals } from "../../src/hop/tokens.js";
import { findContract, hopChains } from "../chain/local-chains.js";

/** A token's contracts on one chain, by the SDK's names; a name whose contract the token does not have there is absent. */
export interface TokenContracts {
  readonly token: string;
  readonly decimals: number;
  find(name: string): string | undefined;
  /** @throws Error when the SDK has no such contract. */
  get(name: string): string;
}

/** Returns every token of the SDK on a chain, in its order. */
export function listTokenContracts(slug: string): readonly TokenContracts[] {
  const tokens = [...getNetwork("mainnet").contracts.entries()].filter(([, byChain]) => byChain.has(slug));
  return tokens.map(([token]) => getTokenContracts(token, slug));
}

export function getTokenContracts(token: string, slug: string): TokenContracts {
  const find = (name: string): string | undefined => {
    const address = findContract(token, slug, name);
    // The SDK writes the zero address for "none" (as it does for ETH on L1), and some addresses without checksum.
    return address === undefined || address === constants.AddressZero ? undefined : utils.getAddress(address);
  };
  const get = (name: string): string => {
    const address = find(name);
    if (address === undefined) throw new Error(`the SDK has no ${name} of ${token} on ${slug}`);
    return address;
  };
  return { token, decimals: getTokenDecimals(token), find, get };
}

/** Returns the ids of the other chains on which a token has a Hop bridge. */
export function listBridgedChainIds(token: string, except: string): readonly number[] {
  const hasBridge = (slug: string): boolean =>
    (findContract(token, slug, "l1Bridge") ?? findContract(token, slug, "l2Bridge")) !== undefined;
  const chains = [...hopChains.values()].filter(({ slug }) => slug !== except && hasBridge(slug));
  return chains.map(({ chainId }) => chainId);
}

/** Returns the SDK's bonders of routes that end on this chain. */
export function listBonders(token: string, slug: string): readonly string[] {
  const byToken: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
  // One of the SDK's addresses ends in a space.
  const bonders = Object.values(byToken[token] ?? {}).flatMap((byDestination) => byDestination[slug]?.trim() ?? []);
  return [...new Set(bonders)];
}

/** Returns the stake of each bonder of a token, in its smallest unit. */
export function getBonderStake(token: string): bigint {
  const stakes: Record<string, number> = sdkConfig.mainnet.bonderTotalStake;
  const whole = stakes[token];
  if (whole === undefined) throw new Error(`the SDK names no bonder stake of ${token}`);
  return BigInt(whole) * 10n ** BigInt(getTokenDecimals(token));
}
