import { inject } from "vitest";
import { type ExplorerStub, startExplorerStub } from "../support/stubs/explorer-stub.js";
import { type Baseline, DESTINATION_CHAIN, SOURCE_CHAIN } from "./baseline.js";
import type { Upstream } from "./expected-outcomes.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";

/** Limits of a gateway, in milliseconds. */
export interface GatewayLimits {
  readonly timeoutMs: number;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number;
}

/** What a gateway is started with that has proxies before one upstream. */
interface ProxiedUpstream {
  readonly proxies: readonly FaultProxy[];
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Puts proxies in front of an upstream. */
export async function proxyUpstream(
  upstream: Upstream,
  { timeoutMs, maxAgeMs, maxStaleMs }: GatewayLimits,
  truth: Baseline,
): Promise<ProxiedUpstream> {
  const { chains, assetsUrl, attestationUrl } = inject("network");
  const urlOf = (slug: string): string => chains[slug]?.url ?? "";
  const otherChainUrl = urlOf("gnosis");
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
        const proxy = await startFaultProxy(urlOf(slug), { otherChainUrl });
        return [[proxy], { [`RPC_URL_${slug.toUpperCase()}`]: proxy.url }];
      }
      case "one of two endpoints":
      case "all endpoints": {
        const two = [1, 2].map(() => startFaultProxy(urlOf(SOURCE_CHAIN), { otherChainUrl }));
        const both = await Promise.all(two);
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
        // It is asked for what the chains cannot tell.
        explorer = await startExplorerStub([
          toExplorerRecord(truth.answers["status by id"] as Record<string, unknown>),
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

/** A transfer as the explorer tells of it. */
function toExplorerRecord(status: Record<string, unknown>): Record<string, unknown> {
  const { state, otherTransferIds, amountUsd, bonderFeeUsd, ...same } = status;
  return { ...same, amountUsd, tokenPriceUsd: Number(amountUsd) / Number(status.amountFormatted) };
}
