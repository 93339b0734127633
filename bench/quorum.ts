import { setTimeout as sleep } from "node:timers/promises";
import { type ProxiedRequest, type RpcProxy, startRpcProxy } from "../test/support/stubs/rpc-proxy.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE, type Route } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";

// Measures what RPC_QUORUM costs a gateway that quotes from memory: HTTP requests and calls to the chains, relative to one
// endpoint, on chains with blocks at a real pace. And what callers get while the first of three endpoints lies and the third
// is a block behind.

const ROUTES: readonly Route[] = [
  FULL_ROUTE,
  { token: "ETH", sourceChainSlug: "polygon", destinationChainSlug: "optimism" },
  { token: "ETH", sourceChainSlug: "arbitrum", destinationChainSlug: "ethereum" },
];
const SECONDS = Number(process.env.QUORUM_SECONDS ?? 20);
const WARM_UP_MS = 3_000;
const QUOTE_INTERVAL_MS = 100;
const ENDPOINTS = 3;

interface Scenario {
  readonly endpoints: number;
  readonly quorum: number;
  readonly isThirdBehind?: boolean;
  readonly isFirstLying?: boolean;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "one endpoint": { endpoints: 1, quorum: 1 },
  "three endpoints": { endpoints: 3, quorum: 1 },
  "RPC_QUORUM=2 of three": { endpoints: 3, quorum: 2 },
  "RPC_QUORUM=2, the third a block behind": { endpoints: 3, quorum: 2, isThirdBehind: true },
  "RPC_QUORUM=2, the third a block behind, the first lies": {
    ...{ endpoints: 3, quorum: 2 },
    ...{ isThirdBehind: true, isFirstLying: true },
  },
};

interface Cost {
  readonly requestsPerSecond: number;
  readonly callsPerSecond: number;
  readonly quotes: number;
  readonly refused: number;
  /** When an endpoint was named as outvoted; undefined: none was. */
  readonly namedAfterMs: number | undefined;
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  await enableIntervalMining(environment);
  for (const route of ROUTES) {
    const slugs = [route.sourceChainSlug, route.destinationChainSlug];
    console.log(`${route.token} from ${slugs.join(" to ")}, ${SECONDS} s each`);
    let base: Cost | undefined;
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      const cost = await measureScenario(environment, route, scenario);
      base ??= cost;
      const ratio = (cost.requestsPerSecond / base.requestsPerSecond).toFixed(2);
      const named = cost.namedAfterMs === undefined ? "" : `, named after ${(cost.namedAfterMs / 1000).toFixed(1)} s`;
      console.log(
        `  ${name}: ${cost.requestsPerSecond.toFixed(2)} HTTP requests per second (${ratio}), ` +
          `${cost.callsPerSecond.toFixed(1)} calls; ${cost.refused} of ${cost.quotes} quotes refused${named}`,
      );
    }
  }
}

async function measureScenario(
  environment: Readonly<Record<string, string>>,
  route: Route,
  { endpoints, quorum, isThirdBehind = false, isFirstLying = false }: Scenario,
): Promise<Cost> {
  const proxies: RpcProxy[] = [];
  const urls: Record<string, string> = {};
  for (const slug of ["ethereum", route.sourceChainSlug, route.destinationChainSlug]) {
    const name = `RPC_URL_${slug.toUpperCase()}`;
    const ofChain = await Promise.all(Array.from({ length: endpoints }, () => startRpcProxy(environment[name] ?? "")));
    if (isThirdBehind && ofChain[2] !== undefined) ofChain[2].behaviour.lagBlocks = 1;
    if (isFirstLying && ofChain[0] !== undefined) ofChain[0].behaviour.override = lie;
    proxies.push(...ofChain);
    urls[name] = ofChain.map(({ url }) => url).join(",");
  }
  const gateway = await startServer("gateway", { ...fillUnused(environment), ...urls, RPC_QUORUM: `${quorum}` });
  try {
    const startedAt = performance.now();
    let namedAfterMs: number | undefined;
    let quotes = 0;
    let refused = 0;
    const ask = async (milliseconds: number): Promise<void> => {
      for (const end = performance.now() + milliseconds; performance.now() < end; await sleep(QUOTE_INTERVAL_MS)) {
        const { status } = await fetch(`${gateway.url}${buildQuotePath(route, quotes)}`);
        quotes += 1;
        if (status !== 200) refused += 1;
        if (namedAfterMs === undefined && (await isNamed(gateway.url))) namedAfterMs = performance.now() - startedAt;
      }
    };
    await ask(WARM_UP_MS);
    for (const proxy of proxies) proxy.reset();
    const beganAt = performance.now();
    await ask(SECONDS * 1000);
    const seconds = (performance.now() - beganAt) / 1000;
    const requests = proxies.flatMap((proxy) => [...proxy.requests]);
    const countCalls = ({ calls }: ProxiedRequest): number => calls.length;
    const calls = requests.reduce((sum, request) => sum + countCalls(request), 0);
    return {
      requestsPerSecond: requests.length / seconds,
      callsPerSecond: calls / seconds,
      ...{ quotes, refused, namedAfterMs },
    };
  } finally {
    await gateway.stop();
    await Promise.all(proxies.map((proxy) => proxy.close()));
  }
}

/** Gives the chains that are not asked as many endpoints as a quorum needs. */
function fillUnused(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const dead = Array.from({ length: ENDPOINTS }, (_, index) => `http://127.0.0.1:${index + 1}`).join(",");
  const names = Object.keys(environment).filter((name) => name.startsWith("RPC_URL_") && !name.includes("GOERLI"));
  return { ...environment, ...Object.fromEntries(names.map((name) => [name, dead])) };
}

async function isNamed(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`);
  return (await response.text()).includes('"outvoted"');
}

/** Changes the last digit of what contracts say. */
const lie: NonNullable<RpcProxy["behaviour"]["override"]> = ({ method }, result) => {
  if (method !== "eth_call" || typeof result !== "string" || result.length < 3) return undefined;
  return { result: result.slice(0, -1) + (result.endsWith("0") ? "1" : "0") };
};

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
