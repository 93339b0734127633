import { openSync } from "node:fs";
import { devNull } from "node:os";
import { compareServers } from "./support/compare-servers.js";
import { buildGetRequest, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { buildQuotePath, FULL_ROUTE } from "./support/routes.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// How many GET /v1/quote a second one process answers on a warm route, with another amount each time and with one
// amount, against a bare node:http server that gives the same answer; and what a line in the log for each costs.

const CONNECTIONS = 32;
let nextAmount = 0;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = buildQuotePath(FULL_ROUTE, 0);
  const gateway = await startServer("gateway", environment);
  const logging = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, openSync(devNull, "w"));
  await recordResponse(`${logging.url}${path}`);
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
    { name: "hop-gateway, an amount of its own each", server: gateway, load: distinct },
    { name: "hop-gateway, the same amount", server: gateway, load: same },
    { name: "hop-gateway, each with a line in the log", server: logging, load: distinct },
  ]);
  for (const server of [gateway, logging, raw]) await server.stop();
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway, raw: serveRecordedResponse });
