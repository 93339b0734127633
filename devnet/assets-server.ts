import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sdkConfig } from "@hop-protocol/sdk/config";
import { hopChains } from "./chain/local-chains.js";
import { signAttestation } from "./deploy/attestation.js";

/** Token prices of the local network in US dollars: round numbers, the same on every run. */
export const PRICES_USD: Readonly<Record<string, number>> = {
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
  /** Base URL of settings, liquidity, prices and attestations. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Serves what Hop and Circle host for the real network: the SDK's built-in settings, the bonders' liquidity, token prices,
 * and attestations of CCTP messages. It attests any message, since a request names only the hash.
 *
 * @param unattestedHashes Hashes of the messages that it does not attest.
 */
export async function startAssetsServer(
  unattestedHashes: readonly string[] = [],
  now: () => number = () => Date.now(),
): Promise<AssetsServer> {
  const documents: Readonly<Record<string, () => unknown>> = {
    "/mainnet/v1-core-config.json": () => buildCoreConfig("mainnet"),
    "/goerli/v1-core-config.json": () => buildCoreConfig("goerli"),
    "/mainnet/v1-available-liquidity.json": () => ({ timestamp: now(), data: buildLiquidity() }),
    "/goerli/v1-available-liquidity.json": () => ({ timestamp: now(), data: {} }),
    "/token-prices.json": () => ({ timestamp: now(), prices: PRICES_USD }),
  };

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const hash = /^\/v1\/attestations\/(0x[0-9a-f]{64})$/i.exec(pathname)?.[1];
    if (hash !== undefined && unattestedHashes.includes(hash.toLowerCase()))
      sendJson(response, 200, { attestation: "PENDING", status: "pending_confirmations" });
    else if (hash !== undefined) sendJson(response, 200, { status: "complete", attestation: signAttestation(hash) });
    else if (Object.hasOwn(documents, pathname)) sendJson(response, 200, documents[pathname]?.());
    else sendJson(response, 404, { error: "not found" });
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

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

function buildCoreConfig(network: "mainnet" | "goerli"): unknown {
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

const AMPLE_LIQUIDITY = `${10n ** 30n}`;

/** Builds the credit of every bonder on every route, in the token's smallest unit: more than any test sends. */
function buildLiquidity(): Record<string, unknown> {
  const bonders: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
  const data: Record<string, unknown> = {};
  for (const [token, bySource] of Object.entries(bonders)) {
    const routes = Object.entries(bySource).map(([source, byDestination]) => {
      const localSlugs = Object.keys(byDestination).filter((slug) => hopChains.has(slug));
      return [source, Object.fromEntries(localSlugs.map((slug) => [slug, AMPLE_LIQUIDITY]))];
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
