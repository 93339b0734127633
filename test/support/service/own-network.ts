import { afterAll, beforeAll } from "vitest";
import { connectChains, type LocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { type LocalNetwork, type LocalNetworkOptions, startLocalNetwork } from "../../../devnet/network.js";

/** A network on which no other test acts, and its chains. Their members exist while the tests run. */
export interface OwnNetwork {
  readonly network: LocalNetwork;
  readonly chains: LocalChains;
}

/** Starts a local network for the tests of a file or a group that send transactions or mine, and stops it after them. */
export function useOwnNetwork(options?: LocalNetworkOptions): OwnNetwork {
  const network: Partial<LocalNetwork> = {};
  const chains = new Map<string, LocalChain>();
  beforeAll(async () => {
    const started = await startLocalNetwork(options);
    Object.assign(network, started);
    for (const [slug, chain] of connectChains(started.chains)) chains.set(slug, chain);
  });
  afterAll(() => network.stop?.());
  return { network: network as LocalNetwork, chains };
}
