import { connectChains } from "../../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { tellBlockBehind } from "./lies.js";
import { startLyingProxy, type TellLie } from "./lying-proxy.js";

/** A local network of its own on which correct answers stay the same, with three endpoints of every chain. */
export interface LyingNetwork extends Pick<LocalNetwork, "chains" | "transfers"> {
  /** Configures a gateway for these endpoints. */
  readonly environment: Readonly<Record<string, string>>;
  /** Has the first endpoint of every chain tell a lie; undefined: it is honest. */
  setLie(lie: TellLie | undefined): void;
  /** Has the third endpoint of every chain be honest, but a block behind. */
  holdBackThird(): void;
  stop(): Promise<void>;
}

const ENDPOINTS = 3;

export async function startLyingNetwork(): Promise<LyingNetwork> {
  // Without blocks that are mined now and then.
  const network = await startLocalNetwork({ blockTimeMs: 3_600_000 });
  const { chains, transfers } = network;
  // A node has no state of the blocks before its start.
  for (const { rpc } of connectChains(chains).values()) for (let mined = 0; mined < 5; mined++) await rpc("evm_mine");
  const started = [...getNetwork("mainnet").chains.keys()].map(async (slug) => {
    const target = chains[slug]?.url;
    const proxies =
      target === undefined ? [] : await Promise.all(Array.from({ length: ENDPOINTS }, () => startLyingProxy(target)));
    return { slug, proxies };
  });
  const endpoints = await Promise.all(started);
  const listUrls = ({ proxies }: (typeof endpoints)[number]): string =>
    Array.from({ length: ENDPOINTS }, (_, index) => proxies[index]?.url ?? `http://127.0.0.1:${index + 1}`).join(",");
  return {
    chains,
    transfers,
    environment: {
      ...network.environment,
      ...Object.fromEntries(endpoints.map((each) => [`RPC_URL_${each.slug.toUpperCase()}`, listUrls(each)])),
      ...{ PRICE_SOURCES: "chainlink,assets", LOG_LEVEL: "warn" },
    },
    setLie(lie) {
      for (const { proxies } of endpoints) proxies[0]?.setLie(lie);
    },
    holdBackThird() {
      for (const { proxies } of endpoints) proxies[2]?.setLie(tellBlockBehind);
    },
    async stop() {
      await Promise.all(endpoints.flatMap(({ proxies }) => proxies).map((proxy) => proxy.close()));
      await network.stop();
    },
  };
}
