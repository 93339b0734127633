import { countSequentialRounds, type ProxiedRequest } from "../test/support/stubs/rpc-proxy.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE, type Route } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures the first quote of a freshly started gateway for each kind of route, with the default engine and with the
// SDK: upstream requests, calls, sequential rounds and time, at several network latencies.

const LATENCIES_MS = [0, 50, 100];
const ENGINES = ["snapshot", "sdk"];
const CONCURRENT_QUOTES = 32;

const ROUTES_BY_KIND: Readonly<Record<string, Route>> = {
  "L2 to L2": FULL_ROUTE,
  "L2 to L1": { token: "ETH", sourceChainSlug: "arbitrum", destinationChainSlug: "ethereum" },
  "L1 to L2": { token: "USDT", sourceChainSlug: "ethereum", destinationChainSlug: "polygon" },
  "to optimism": { token: "ETH", sourceChainSlug: "arbitrum", destinationChainSlug: "optimism" },
  "to base": { token: "ETH", sourceChainSlug: "arbitrum", destinationChainSlug: "base" },
  CCTP: { token: "USDC", sourceChainSlug: "polygon", destinationChainSlug: "arbitrum" },
  "USDC.e": { token: "USDC.e", sourceChainSlug: "polygon", destinationChainSlug: "arbitrum" },
};

interface Cost {
  readonly tookMs: number;
  readonly chains: readonly ProxiedRequest[];
  readonly others: readonly ProxiedRequest[];
}

/** Starts a gateway and sends `count` identical quote requests at once. */
async function measureColdQuotes(upstreams: ProxiedUpstreams, engine: string, route: Route, count = 1): Promise<Cost> {
  const gateway = await startServer("gateway", { ...upstreams.environment, QUOTE_ENGINE: engine });
  try {
    upstreams.reset();
    const url = `${gateway.url}${buildQuotePath(route, 0)}`;
    const responses = await Promise.all(Array.from({ length: count }, () => timedGet(url)));
    const end = Math.max(...responses.map(({ completedAt }) => completedAt));
    const beforeEnd = (requests: readonly ProxiedRequest[]) => requests.filter(({ arrivedAt }) => arrivedAt <= end);
    return {
      tookMs: Math.max(...responses.map(({ tookMs }) => tookMs)),
      chains: beforeEnd(upstreams.chainRequests()),
      others: beforeEnd(upstreams.otherRequests()),
    };
  } finally {
    await gateway.stop();
  }
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const upstreams = await proxyUpstreams(environment);
  try {
    console.log(`first quote of a new process; time at ${LATENCIES_MS.join(", ")} ms of network latency`);
    for (const [kind, route] of Object.entries(ROUTES_BY_KIND)) {
      for (const engine of ENGINES) {
        const costs: Cost[] = [];
        for (const latencyMs of LATENCIES_MS) {
          upstreams.setLatency(latencyMs);
          costs.push(await measureColdQuotes(upstreams, engine, route));
        }
        const concurrent = await measureColdQuotes(upstreams, engine, route, CONCURRENT_QUOTES);
        printCosts(kind, engine, costs, concurrent);
      }
    }
  } finally {
    await upstreams.close();
  }
}

/** Rounds are counted at the highest latency: without latency, concurrent requests need not overlap. */
function printCosts(kind: string, engine: string, costs: readonly Cost[], concurrent: Cost): void {
  const cost = costs.at(-1);
  if (cost === undefined) throw new Error("nothing was measured");
  const times = costs.map(({ tookMs }) => tookMs.toFixed(0).padStart(4)).join(" /");
  console.log(
    `  ${kind.padEnd(12)} ${engine.padEnd(9)}${times} ms  chains: ${describeRequests(cost.chains)}  with other sources:` +
      ` ${cost.others.length.toString().padStart(2)} more, ${countSequentialRounds([...cost.chains, ...cost.others])} rounds` +
      `  ${CONCURRENT_QUOTES} at once: ${describeRequests(concurrent.chains)}, ${concurrent.tookMs.toFixed(0)} ms`,
  );
}

function describeRequests(requests: readonly ProxiedRequest[]): string {
  const calls = requests.flatMap((request) => request.calls).length;
  const count = (value: number): string => value.toString().padStart(3);
  return `${count(requests.length)} requests, ${count(calls)} calls, ${countSequentialRounds(requests)} rounds`;
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
