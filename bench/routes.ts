import { compareServers } from "./support/compare-servers.js";
import { createHttpLoads } from "./support/load/create-loads.js";
import { describeGetRequests } from "./support/load/http-requests.js";
import { openTemporaryFile, recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";

// Measures GET /v1/available-routes per second of one process, unfiltered and filtered, against a bare node:http server
// that sends the same response.

const PATHS = ["/v1/available-routes", "/v1/available-routes?token=ETH&fromChain=base"];

async function measure(): Promise<void> {
  const environment = { ASSETS_URL: "off" };
  const gateway = await startServer("gateway", environment);
  const loggingGateway = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, openTemporaryFile());
  for (const path of PATHS) {
    const raw = await startServer("raw", await recordResponse(`${gateway.url}${path}`));
    const loads = createHttpLoads(describeGetRequests(path));
    await compareServers(`GET ${path}`, [
      { name: "bare node:http", server: raw, loads },
      { name: "hop-gateway", server: gateway, loads },
      { name: "hop-gateway, default log into a file", server: loggingGateway, loads },
    ]);
    await raw.stop();
  }
  for (const server of [gateway, loggingGateway]) await server.stop();
}

await runBench(measure, { gateway: serveGateway, raw: serveRecordedResponse });
