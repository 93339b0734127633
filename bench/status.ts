import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getNetwork } from "../src/hop/networks.js";
import { compareServers } from "./support/compare-servers.js";
import { createHttpLoads } from "./support/load/create-loads.js";
import { describeGetRequests, VALUE } from "./support/load/http-requests.js";
import { recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";
import { createSyntheticIndex } from "./support/synthetic-index.js";

// Measures statuses per second of one process, from the cache and from a large index, against a bare node:http server that
// sends the same response. No upstream is reachable.

/** Far more than the status cache holds. */
const INDEXED_TRANSFERS = 50_000;

async function measure(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hop-status-"));
  const file = join(folder, "index");
  const { transferIds } = await createSyntheticIndex(file, INDEXED_TRANSFERS);
  const environment = { ...unreachableUpstreams(), INDEX: `sqlite:${file}` };
  const gateway = await startServer("gateway", environment);
  const pathOf = (id: string | undefined): string => `/v1/transfer-status?transferId=${id}`;
  const raw = await startServer("raw", await recordResponse(`${gateway.url}${pathOf(transferIds[0])}`));
  const same = createHttpLoads(describeGetRequests(pathOf(transferIds[0])));
  const distinct = createHttpLoads(describeGetRequests(pathOf(VALUE), transferIds));
  await compareServers("GET /v1/transfer-status", [
    { name: "bare node:http", server: raw, loads: same },
    { name: "hop-gateway, one transfer: cached", server: gateway, loads: same },
    { name: "hop-gateway, distinct transfers: from the index", server: gateway, loads: distinct },
  ]);
  for (const server of [gateway, raw]) await server.stop();
  await rm(folder, { recursive: true });
}

/** Returns an environment without any reachable upstream. */
function unreachableUpstreams(): Readonly<Record<string, string>> {
  const urls = [...getNetwork("mainnet").chains.keys()].map((slug) => [
    `RPC_URL_${slug.toUpperCase()}`,
    "http://127.0.0.1:1",
  ]);
  const prices = '{"USDC":1}';
  return { ...Object.fromEntries(urls), ASSETS_URL: "off", EXPLORER_API_URL: "off", TOKEN_PRICES: prices };
}

await runBench(measure, { gateway: serveGateway, raw: serveRecordedResponse });
