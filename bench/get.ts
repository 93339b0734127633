import { compareServers } from "./support/compare-servers.js";
import { createHttpLoads } from "./support/load/create-loads.js";
import { describeGetRequests } from "./support/load/http-requests.js";
import { withLocalNetwork } from "./support/local-network.js";
import { openTemporaryFile, recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { buildQuotePath, describeQuotes, FULL_ROUTE } from "./support/routes.js";
import { runBench, startServer } from "./support/server-process.js";

// Measures GET /v1/quote per second of one process on a warm route: with distinct amounts, with a single amount, and with
// the default log into a file. Against a bare node:http server that sends the same response.

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = buildQuotePath(FULL_ROUTE, 0);
  const gateway = await startServer("gateway", environment);
  const loggingGateway = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, openTemporaryFile());
  await recordResponse(`${loggingGateway.url}${path}`);
  const raw = await startServer("raw", await recordResponse(`${gateway.url}${path}`));

  const distinct = createHttpLoads(describeQuotes());
  const same = createHttpLoads(describeGetRequests(path));
  await compareServers("GET /v1/quote", [
    { name: "bare node:http", server: raw, loads: distinct },
    { name: "hop-gateway, distinct amounts", server: gateway, loads: distinct },
    { name: "hop-gateway, one amount", server: gateway, loads: same },
    { name: "hop-gateway, distinct amounts, default log into a file", server: loggingGateway, loads: distinct },
  ]);
  for (const server of [gateway, loggingGateway, raw]) await server.stop();
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway, raw: serveRecordedResponse });
