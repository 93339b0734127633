import { openSync } from "node:fs";
import { devNull } from "node:os";
import { compare } from "./support/compare-servers.js";
import { getRequest, loadHttp } from "./support/http-load-generator.js";
import { overNetwork } from "./support/local-network.js";
import { recordAnswer, serveGateway, serveRaw } from "./support/recorded-server.js";
import { fullRoute, quotePath } from "./support/routes.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// How many GET /v1/quote a second one process answers on a warm route, with another amount each time and with one
// amount, against a bare node:http server that gives the same answer; and what a line in the log for each costs.

const connections = 32;
let amounts = 0;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = quotePath(fullRoute, 0);
  const gateway = await startServer("gateway", environment);
  const logging = await startServer("gateway", { ...environment, LOG_LEVEL: "info" }, openSync(devNull, "w"));
  await recordAnswer(`${logging.url}${path}`);
  const raw = await startServer("raw", await recordAnswer(`${gateway.url}${path}`));

  const distinct = ({ url }: ServerProcess, seconds: number) =>
    loadHttp({ url, connections, seconds, request: () => getRequest(quotePath(fullRoute, amounts++)) });
  const same = ({ url }: ServerProcess, seconds: number) =>
    loadHttp({ url, connections, seconds, request: () => getRequest(path) });
  await compare(`GET /v1/quote, ${connections} connections`, [
    { name: "bare node:http", server: raw, load: distinct },
    { name: "hop-gateway, an amount of its own each", server: gateway, load: distinct },
    { name: "hop-gateway, the same amount", server: gateway, load: same },
    { name: "hop-gateway, each with a line in the log", server: logging, load: distinct },
  ]);
  for (const server of [gateway, logging, raw]) await server.stop();
}

await runBench(() => overNetwork(measure), { gateway: serveGateway, raw: serveRaw });
