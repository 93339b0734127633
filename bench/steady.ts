import { enableIntervalMining } from "./support/interval-mining.js";
import { runHttpLoad } from "./support/load/http-load-generator.js";
import { buildGetRequest } from "./support/load/http-requests.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE, fetchRoutes, type Route } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures upstream traffic of a gateway under load, by quotes per second and number of routes, and how long the traffic
// continues after the last request. The local chains produce blocks about as often as the real ones.

const RATES_PER_SECOND = [1, 100, 5_000];
const LOAD_SECONDS = 4;
const CONNECTIONS = 64;
/** Upstream traffic counts as ended after this long without a request. */
const QUIET_MS = 4_000;
const TIMEOUT_MS = 45_000;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  await enableIntervalMining(environment);
  const upstreams = await proxyUpstreams(environment);
  const gateway = await startServer("gateway", upstreams.environment);
  try {
    const routes = await fetchRoutes(gateway.url);
    console.log(`upstream traffic, ${LOAD_SECONDS} s each`);
    for (const quoted of [[FULL_ROUTE], routes.slice(0, 10), routes]) {
      for (const route of quoted) await timedGet(`${gateway.url}${buildQuotePath(route, 0)}`);
      for (const rate of RATES_PER_SECOND) await measureRate(gateway.url, upstreams, quoted, rate);
    }
    await measureTimeToQuiet(upstreams);
  } finally {
    await gateway.stop();
    await upstreams.close();
  }
}

async function measureRate(
  url: string,
  upstreams: ProxiedUpstreams,
  routes: readonly Route[],
  rate: number,
): Promise<void> {
  upstreams.reset();
  const load = await runHttpLoad({
    url,
    connections: CONNECTIONS,
    seconds: LOAD_SECONDS,
    perSecond: rate,
    request: (index) => buildGetRequest(buildQuotePath(routes[index % routes.length] as Route, index)),
  });
  const requests = upstreams.chainRequests();
  const calls = requests.flatMap((request) => request.calls).length;
  const perSecond = (count: number): string => (count / load.seconds).toFixed(1).padStart(7);
  console.log(
    `  ${routes.length.toString().padStart(3)} routes, ${perSecond(load.completed)} of ${rate.toString().padStart(4)} quotes per second:` +
      `${perSecond(requests.length)} HTTP requests, ${perSecond(calls)} RPC calls to the chains,` +
      `${perSecond(upstreams.otherRequests().length)} requests to other sources, per second`,
  );
}

async function measureTimeToQuiet(upstreams: ProxiedUpstreams): Promise<void> {
  const began = performance.now();
  upstreams.reset();
  let last = began;
  while (performance.now() - last < QUIET_MS && performance.now() - began < TIMEOUT_MS) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const requests = [...upstreams.chainRequests(), ...upstreams.otherRequests()];
    last = Math.max(began, ...requests.map(({ arrivedAt }) => arrivedAt));
  }
  const after = ((last - began) / 1000).toFixed(1);
  const isQuiet = performance.now() - last >= QUIET_MS;
  console.log(
    isQuiet
      ? `  without load: last upstream request after ${after} s, then none for ${QUIET_MS / 1000} s`
      : `  without load: upstream requests continue after ${after} s`,
  );
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
