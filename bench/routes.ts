import { compare } from "./support/compare-servers.js";
import { getRequest, loadHttp } from "./support/http-load-generator.js";
import { recordAnswer, serveGateway, serveRaw } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";

// How many GET /v1/available-routes a second one process answers, all of them and a few, against a bare node:http
// server that gives the same answer.

const connections = 32;
const paths = ["/v1/available-routes", "/v1/available-routes?token=ETH&fromChain=base"];

async function measure(): Promise<void> {
  const gateway = await startServer("gateway", { ASSETS_URL: "off" });
  for (const path of paths) {
    const raw = await startServer("raw", await recordAnswer(`${gateway.url}${path}`));
    const load = ({ url }: { readonly url: string }, seconds: number) =>
      loadHttp({ url, connections, seconds, request: () => getRequest(path) });
    await compare(`GET ${path}`, [
      { name: "bare node:http", server: raw, load },
      { name: "hop-gateway", server: gateway, load },
    ]);
    await raw.stop();
  }
  await gateway.stop();
}

await runBench(measure, { gateway: serveGateway, raw: serveRaw });
