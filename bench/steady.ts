import { getRequest, loadHttp } from "./support/http-load-generator.js";
import { mineInIntervals } from "./support/interval-mining.js";
import { countUpstreams, overNetwork, type Upstreams } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { fullRoute, quotePath, type Route, routesOf } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";
import { ask } from "./support/timed-get.js";

// What a gateway asks of the chains while it is asked for quotes, by how many a second and on how many routes; and how
// soon it asks nothing any more when nobody asks it. The chains make blocks about as often as the real ones.

const rates = [1, 100, 5_000];
const seconds = 4;
const connections = 64;
/** So long without a request upstream counts as the end of them. */
const quietMs = 4_000;
const patienceMs = 45_000;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  await mineInIntervals(environment);
  const upstreams = await countUpstreams(environment);
  const gateway = await startServer("gateway", upstreams.environment);
  try {
    const routes = await routesOf(gateway.url);
    console.log(`upstream traffic, ${seconds} s each`);
    for (const asked of [[fullRoute], routes.slice(0, 10), routes]) {
      for (const route of asked) await ask(`${gateway.url}${quotePath(route, 0)}`);
      for (const rate of rates) await measureRate(gateway.url, upstreams, asked, rate);
    }
    await measureEnd(upstreams);
  } finally {
    await gateway.stop();
    await upstreams.close();
  }
}

async function measureRate(url: string, upstreams: Upstreams, routes: readonly Route[], rate: number): Promise<void> {
  upstreams.reset();
  const load = await loadHttp({
    url,
    connections,
    seconds,
    perSecond: rate,
    request: (index) => getRequest(quotePath(routes[index % routes.length] as Route, index)),
  });
  const requests = upstreams.chainRequests();
  const calls = requests.flatMap((request) => request.calls).length;
  const perSecond = (count: number): string => (count / load.seconds).toFixed(1).padStart(7);
  console.log(
    `  ${routes.length.toString().padStart(3)} routes, ${perSecond(load.answered)} of ${rate.toString().padStart(4)} quotes a second:` +
      `${perSecond(requests.length)} HTTP requests, ${perSecond(calls)} RPC calls to the chains,` +
      `${perSecond(upstreams.otherRequests().length)} requests elsewhere, each a second`,
  );
}

async function measureEnd(upstreams: Upstreams): Promise<void> {
  const began = performance.now();
  upstreams.reset();
  let last = began;
  while (performance.now() - last < quietMs && performance.now() - began < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const requests = [...upstreams.chainRequests(), ...upstreams.otherRequests()];
    last = Math.max(began, ...requests.map(({ arrivedAt }) => arrivedAt));
  }
  const after = ((last - began) / 1000).toFixed(1);
  const isQuiet = performance.now() - last >= quietMs;
  console.log(
    isQuiet
      ? `  nobody asks: the last request upstream came after ${after} s, then none in ${quietMs / 1000} s`
      : `  nobody asks: requests upstream go on after ${after} s`,
  );
}

await runBench(() => overNetwork(measure), { gateway: serveGateway });
