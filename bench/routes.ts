import { compareServers } from "./support/compare-servers.js";
import { buildGetRequest, runHttpLoad } from "./support/http-load-generator.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";

// Measures GET /v1/available-routes per second of one process, unfiltered and filtered, against a bare node:http server
// that sends the same response.

const CONNECTIONS = 32;
const PATHS = ["/v1/available-routes", "/v1/available-routes?token=ETH&fromChain=base"];

async function measure(): Promise<void> {
  const gateway = await startServer("gateway", { ASSETS_URL: "off" });
  for (const path of PATHS) {
    const raw = await startServer("raw", await recordResponse(`${gateway.url}${path}`));
    const load = ({ url }: { readonly url: string }, seconds: number) =>
      runHttpLoad({ url, connections: CONNECTIONS, seconds, request: () => buildGetRequest(path) });
    await compareServers(`GET ${path}`, [
      { name: "bare node:http", server: raw, load },
      { name: "hop-gateway", server: gateway, load },
    ]);
    await raw.stop();
  }
  await gateway.stop();
}

await runBench(measure, { gateway: serveGateway, raw: serveRecordedResponse });
