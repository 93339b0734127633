import { openSync } from "node:fs";
import { devNull } from "node:os";
import { compareServers } from "./support/compare-servers.js";
import { buildGetRequest, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE } from "./support/routes.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Measures GET /v1/quote per second of one process on a warm route, with distinct amounts and with a single amount,
// against a bare node:http server that sends the same response; and the cost of one access log line per request.

const CONNECTIONS = 32;
let nextAmount = 0;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = buildQuotePath(FULL_ROUTE, 0);
  const gateway = await startServer("gateway", environment);
  const loggingGateway = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, openSync(devNull, "w"));
  await recordResponse(`${loggingGateway.url}${path}`);
  const raw = await startServer("raw", await recordResponse(`${gateway.url}${path}`));

  const distinct = ({ url }: ServerProcess, seconds: number) =>
    runHttpLoad({
      url,
      connections: CONNECTIONS,
      seconds,
      request: () => buildGetRequest(buildQuotePath(FULL_ROUTE, nextAmount++)),
    });
  const same = ({ url }: ServerProcess, seconds: number) =>
    runHttpLoad({ url, connections: CONNECTIONS, seconds, request: () => buildGetRequest(path) });
  await compareServers(`GET /v1/quote, ${CONNECTIONS} connections`, [
    { name: "bare node:http", server: raw, load: distinct },
    { name: "hop-gateway, distinct amounts", server: gateway, load: distinct },
    { name: "hop-gateway, one amount", server: gateway, load: same },
    { name: "hop-gateway, distinct amounts, access log on", server: loggingGateway, load: distinct },
  ]);
  for (const server of [gateway, loggingGateway, raw]) await server.stop();
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway, raw: serveRecordedResponse });
