import { afterAll, beforeAll, inject } from "vitest";
import { type RpcProxy, startRpcProxies } from "../stubs/rpc-proxy.js";

/**
 * Starts a counting proxy in front of every chain for the tests of a file. They are there while the tests run.
 * @param getChains default: those of the shared network
 */
export function useChainProxies(getChains = () => inject("network").chains): ReadonlyMap<string, RpcProxy> {
  const proxies = new Map<string, RpcProxy>();
  beforeAll(async () => {
    for (const [slug, proxy] of await startRpcProxies(getChains())) proxies.set(slug, proxy);
  });
  afterAll(() => Promise.all([...proxies.values()].map((proxy) => proxy.close())));
  return proxies;
}
