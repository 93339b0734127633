import { startLocalNetwork } from "../../devnet/network.js";
import type { SeededTransfer } from "../../devnet/seed/seeded-transfer.js";
import { parseUrl } from "../../src/chain/parse-url.js";
import { type ProxiedRequest, type RpcProxy, startRpcProxy } from "../../test/support/stubs/rpc-proxy.js";

type Environment = Readonly<Record<string, string>>;

/** Starts the local Hop network and runs a function with the environment that configures a gateway for it. */
export async function withLocalNetwork(
  run: (environment: Environment, transfers: readonly SeededTransfer[]) => Promise<void>,
): Promise<void> {
  const network = await startLocalNetwork({ log: (line) => console.log(`(local network: ${line})`) });
  try {
    await run(network.environment, network.transfers);
  } finally {
    await network.stop();
  }
}

/** Proxies in front of every upstream of the gateway. */
export interface ProxiedUpstreams {
  /** Environment of a gateway that uses them. */
  readonly environment: Environment;
  /** Returns the requests to all chains since the last reset. */
  chainRequests(): readonly ProxiedRequest[];
  /** Returns the requests to one chain since the last reset. */
  requestsOf(slug: string): readonly ProxiedRequest[];
  /** Returns the requests for settings, prices and attestations since the last reset. */
  otherRequests(): readonly ProxiedRequest[];
  setLatency(ms: number): void;
  reset(): void;
  close(): Promise<void>;
}

/** Puts a counting proxy in front of each upstream URL of an environment. */
export async function proxyUpstreams(environment: Environment): Promise<ProxiedUpstreams> {
  const proxies = new Map<string, RpcProxy>();
  const changed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    // Everything else, and values that are no URL, stays as it is.
    const isProxied = /^(?:RPC_URL_|ASSETS_URL|ATTESTATION_API_URL)/.test(name) && parseUrl(value) !== undefined;
    if (!isProxied) {
      changed[name] = value;
      continue;
    }
    const proxy = proxies.get(value) ?? (await startRpcProxy(value));
    proxies.set(value, proxy);
    changed[name] = proxy.url;
  }
  const all = [...proxies.values()];
  const chains = Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith("RPC_URL_") ? (proxies.get(value) ?? []) : [],
  );
  const requestsOf = (some: readonly RpcProxy[]): ProxiedRequest[] => some.flatMap(({ requests }) => requests);
  return {
    environment: changed,
    chainRequests: () => requestsOf(chains),
    requestsOf: (slug) => proxies.get(environment[`RPC_URL_${slug.toUpperCase()}`] ?? "")?.requests ?? [],
    otherRequests: () => requestsOf(all.filter((proxy) => !chains.includes(proxy))),
    setLatency(ms) {
      for (const { behaviour } of all) behaviour.latencyMs = ms;
    },
    reset() {
      for (const proxy of all) proxy.reset();
    },
    async close() {
      await Promise.all(all.map((proxy) => proxy.close()));
    },
  };
}
