import { inject } from "vitest";
import { type ExplorerStub, startExplorerStub } from "../support/stubs/explorer-stub.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { type Baseline, DESTINATION_CHAIN, SOURCE_CHAIN } from "./matrix/baseline.js";
import type { Upstream } from "./matrix/expected-outcomes.js";

/** Limits of a gateway, in milliseconds. */
export interface GatewayLimits {
  readonly timeoutMs: number;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number;
}

/** Proxies of one upstream, and the environment of a gateway that uses them. */
interface ProxiedUpstream {
  readonly proxies: readonly FaultProxy[];
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts proxies in front of an upstream. */
export async function proxyUpstream(
  upstream: Upstream,
  { timeoutMs, maxAgeMs, maxStaleMs }: GatewayLimits,
  baseline: Baseline,
): Promise<ProxiedUpstream> {
  const { chains, assetsUrl, attestationUrl } = inject("network");
  const getUrl = (slug: string): string => chains[slug]?.url ?? "";
  const otherChainUrl = getUrl("gnosis");
  const limits = {
    REQUEST_TIMEOUT_MS: String(timeoutMs),
    QUOTE_MAX_AGE_MS: String(maxAgeMs),
    QUOTE_MAX_STALE_MS: String(maxStaleMs),
  };
  let explorer: ExplorerStub | undefined;

  async function start(): Promise<readonly [readonly FaultProxy[], Readonly<Record<string, string>>]> {
    switch (upstream) {
      case "source chain":
      case "destination chain": {
        const slug = upstream === "source chain" ? SOURCE_CHAIN : DESTINATION_CHAIN;
        const proxy = await startFaultProxy(getUrl(slug), { otherChainUrl });
        return [[proxy], { [`RPC_URL_${slug.toUpperCase()}`]: proxy.url }];
      }
      case "one of two endpoints":
      case "all endpoints": {
        const starting = [1, 2].map(() => startFaultProxy(getUrl(SOURCE_CHAIN), { otherChainUrl }));
        const both = await Promise.all(starting);
        return [both, { RPC_URL_POLYGON: both.map(({ url }) => url).join(",") }];
      }
      case "prices":
      case "settings": {
        const path = upstream === "prices" ? "/token-prices.json" : "/mainnet/v1-core-config.json";
        const proxy = await startFaultProxy(assetsUrl, { path });
        return [[proxy], { ASSETS_URL: proxy.url }];
      }
      case "attestation": {
        const proxy = await startFaultProxy(attestationUrl);
        return [[proxy], { ATTESTATION_API_URL: proxy.url }];
      }
      case "explorer": {
        // Without the source chain only the explorer knows the transfer.
        explorer = await startExplorerStub([
          toExplorerRecord(baseline.responses["status by id"] as Record<string, unknown>),
        ]);
        const proxy = await startFaultProxy(explorer.url);
        return [[proxy], { EXPLORER_API_URL: proxy.url, RPC_URL_POLYGON: "http://127.0.0.1:1" }];
      }
    }
  }

  const [proxies, environment] = await start();
  return {
    proxies,
    environment: { ...limits, ...environment },
    async close() {
      await Promise.all([...proxies.map((proxy) => proxy.close()), explorer?.close()]);
    },
  };
}

/** Converts a status to a record of the explorer. */
function toExplorerRecord(status: Record<string, unknown>): Record<string, unknown> {
  const { state, otherTransferIds, amountUsd, bonderFeeUsd, ...same } = status;
  return { ...same, amountUsd, tokenPriceUsd: Number(amountUsd) / Number(status.amountFormatted) };
}
