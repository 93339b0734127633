import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sdkConfig } from "@hop-protocol/sdk/config";
import { hopChains } from "./chain/local-chains.js";
import { attest } from "./deploy/attestation.js";

/** Token prices of the local network in US dollars: round numbers, the same on every run. */
export const pricesUsd: Readonly<Record<string, number>> = {
  ETH: 3000,
  WETH: 3000,
  MATIC: 0.7,
  POL: 0.7,
  HOP: 0.02,
  DAI: 1,
  XDAI: 1,
  USDC: 1,
  USDT: 1,
  "USDC.e": 1,
  rETH: 3300,
  MAGIC: 0.5,
  SNX: 2,
  sUSD: 1,
  WBTC: 60000,
};

export interface AssetsServer {
  /** Base of the settings, liquidity and prices, and of the attestations. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Serves what Hop and Circle serve on the real network: the SDK's built-in settings, the bonders' liquidity, token
 * prices, and attestations of CCTP messages (of any, since what is asked for is only the hash).
 */
export async function startAssetsServer(now: () => number = Date.now): Promise<AssetsServer> {
  const documents: Readonly<Record<string, () => unknown>> = {
    "/mainnet/v1-core-config.json": () => coreConfig("mainnet"),
    "/goerli/v1-core-config.json": () => coreConfig("goerli"),
    "/mainnet/v1-available-liquidity.json": () => ({ timestamp: now(), data: liquidity() }),
    "/goerli/v1-available-liquidity.json": () => ({ timestamp: now(), data: {} }),
    "/token-prices.json": () => ({ timestamp: now(), prices: pricesUsd }),
  };

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const hash = /^\/v1\/attestations\/(0x[0-9a-f]{64})$/i.exec(pathname)?.[1];
    if (hash !== undefined) answer(response, 200, { status: "complete", attestation: attest(hash) });
    else if (Object.hasOwn(documents, pathname)) answer(response, 200, documents[pathname]?.());
    else answer(response, 404, { error: "not found" });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

function coreConfig(network: "mainnet" | "goerli"): unknown {
  const {
    bonders,
    bonderFeeBps,
    destinationFeeGasPriceMultiplier,
    relayerFeeEnabled,
    relayerFeeWei,
    bridgeDeprecated,
  } = sdkConfig[network];
  return {
    bonders,
    bonderFeeBps,
    destinationFeeGasPriceMultiplier,
    relayerFeeEnabled,
    relayerFeeWei,
    bridgeDeprecated,
  };
}

const plenty = `${10n ** 30n}`;

/** What every bonder can front on every route, in the token's smallest unit: more than anyone sends here. */
function liquidity(): Record<string, unknown> {
  const bonders: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
  const data: Record<string, unknown> = {};
  for (const [token, bySource] of Object.entries(bonders)) {
    const routes = Object.entries(bySource).map(([source, byDestination]) => {
      const known = Object.keys(byDestination).filter((slug) => hopChains.has(slug));
      return [source, Object.fromEntries(known.map((slug) => [slug, plenty]))];
    });
    data[token] = {
      baseAvailableCredit: Object.fromEntries(routes),
      pendingAmounts: {},
      unbondedTransferRootAmounts: {},
      ...(token === "USDC" ? { cctpEnabled: true } : {}),
    };
  }
  return data;
}
