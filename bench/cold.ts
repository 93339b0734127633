import { countSequentialRounds, type ProxiedRequest } from "../test/support/stubs/rpc-proxy.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE, type Route } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";
import { timedGet } from "./support/timed-get.js";

// What the first quote of a gateway that has just started costs, for each kind of route, with the engine that is the
// default and with the SDK: requests, calls and rounds on the chains, and time, with so much network in between.

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

/** Starts a gateway and asks it for one quote, so many times at once. */
async function measureColdQuotes(upstreams: ProxiedUpstreams, engine: string, route: Route, count = 1): Promise<Cost> {
  const gateway = await startServer("gateway", { ...upstreams.environment, QUOTE_ENGINE: engine });
  try {
    upstreams.reset();
    const url = `${gateway.url}${buildQuotePath(route, 0)}`;
    const answers = await Promise.all(Array.from({ length: count }, () => timedGet(url)));
    const end = Math.max(...answers.map(({ completedAt }) => completedAt));
    const until = (requests: readonly ProxiedRequest[]) => requests.filter(({ arrivedAt }) => arrivedAt <= end);
    return {
      tookMs: Math.max(...answers.map(({ tookMs }) => tookMs)),
      chains: until(upstreams.chainRequests()),
      others: until(upstreams.otherRequests()),
    };
  } finally {
    await gateway.stop();
  }
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const upstreams = await proxyUpstreams(environment);
  try {
    console.log(`the first quote of a new process; time with ${LATENCIES_MS.join(", ")} ms of network`);
    for (const [kind, route] of Object.entries(ROUTES_BY_KIND)) {
      for (const engine of ENGINES) {
        const costs: Cost[] = [];
        for (const latencyMs of LATENCIES_MS) {
          upstreams.setLatency(latencyMs);
          costs.push(await measureColdQuotes(upstreams, engine, route));
        }
        const many = await measureColdQuotes(upstreams, engine, route, CONCURRENT_QUOTES);
        printCosts(kind, engine, costs, many);
      }
    }
  } finally {
    await upstreams.close();
  }
}

/** Rounds are those with the most network in between: without any, what is sent at the same time need not overlap. */
function printCosts(kind: string, engine: string, costs: readonly Cost[], many: Cost): void {
  const [cost] = costs.slice(-1);
  if (cost === undefined) throw new Error("nothing was measured");
  const times = costs.map(({ tookMs }) => tookMs.toFixed(0).padStart(4)).join(" /");
  console.log(
    `  ${kind.padEnd(12)} ${engine.padEnd(9)}${times} ms  chains: ${describeRequests(cost.chains)}  with the rest:` +
      ` ${cost.others.length.toString().padStart(2)} more, ${countSequentialRounds([...cost.chains, ...cost.others])} rounds` +
      `  ${CONCURRENT_QUOTES} at once: ${describeRequests(many.chains)}, ${many.tookMs.toFixed(0)} ms`,
  );
}

function describeRequests(requests: readonly ProxiedRequest[]): string {
  const calls = requests.flatMap((request) => request.calls).length;
  const count = (value: number): string => value.toString().padStart(3);
  return `${count(requests.length)} requests, ${count(calls)} calls, ${countSequentialRounds(requests)} rounds`;
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
