import { Agent, type IncomingMessage, request } from "node:http";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listPlacements, placeProcesses } from "./support/placement.js";
import { serveGateway } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Measures the CPU that a warm batch of 100 quotes takes of its server, over GET and gRPC, compared with 100 single calls.

const QUOTES = 100;
const WARM_UP = 300;
const BATCHES = 200;
const ROUNDS = 5;

const SHARED = { token: "USDT", fromChain: "polygon", slippage: 0.5 };
const amounts = Array.from({ length: QUOTES }, (_, index) => String(20_000_000 + index * 10_000));
const query = (path: string, pairs: readonly (readonly [string, string])[]) =>
  `${path}?${new URLSearchParams([...Object.entries(SHARED), ...pairs].map(([name, value]): [string, string] => [name, String(value)]))}`;

/** Sends what is measured once, over one connection. */
type Send = (gateway: ServerProcess) => Promise<void>;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function get(gateway: ServerProcess, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onResponse = (response: IncomingMessage): void => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () =>
        response.statusCode === 200 && !text.includes('"error"') ? resolve() : reject(new Error(text.slice(0, 200))),
      );
    };
    request(`${gateway.url}${path}`, { agent }, onResponse).on("error", reject).end();
  });
}

function createGrpcSender(extra: { readonly view?: string }): Send {
  let client: ReturnType<typeof createClient<typeof BridgeService>> | undefined;
  return async (gateway) => {
    client ??= createClient(BridgeService, createGrpcTransport({ baseUrl: gateway.url }));
    await client.batchGetQuotes({ ...SHARED, ...extra, toChain: ["arbitrum"], amount: amounts });
  };
}

const oneRoute = [["toChain", "arbitrum"], ...amounts.map((amount) => ["amount", amount] as const)] as const;
const allRoutes = amounts.slice(0, QUOTES / 4).map((amount) => ["amount", amount] as const);

const kinds: readonly (readonly [string, Send])[] = [
  ["GET, 100 amounts on one route", (gateway) => get(gateway, query("/v1/quotes", oneRoute))],
  ["GET, 25 amounts to each of 4 chains", (gateway) => get(gateway, query("/v1/quotes", allRoutes))],
  ["GET, view=FULL", (gateway) => get(gateway, query("/v1/quotes", [...oneRoute, ["view", "FULL"]]))],
  ["gRPC", createGrpcSender({})],
  ["gRPC, view=FULL", createGrpcSender({ view: "FULL" })],
  [
    "100 single GETs",
    async (gateway) => {
      for (const amount of amounts)
        await get(
          gateway,
          query("/v1/quote", [
            ["toChain", "arbitrum"],
            ["amount", amount],
          ]),
        );
    },
  ],
];

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const gateway = await startServer("gateway", environment);
  try {
    for (const placement of listPlacements()) {
      placeProcesses(placement, [gateway]);
      console.log(`CPU of the server per batch of ${QUOTES} quotes, on ${placement}: user, and user + system`);
      await measureKinds(gateway);
    }
  } finally {
    agent.destroy();
    await gateway.stop();
  }
}

async function measureKinds(gateway: ServerProcess): Promise<void> {
  for (const [name, send] of kinds) {
    const count = name.startsWith("100") ? BATCHES / 10 : BATCHES;
    for (let index = 0; index < (count * WARM_UP) / BATCHES; index += 1) await send(gateway);
    const user: number[] = [];
    const total: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await gateway.cpuUsage();
      for (let index = 0; index < count; index += 1) await send(gateway);
      const after = await gateway.cpuUsage();
      user.push((after.user - before.user) / count);
      total.push((after.user - before.user + after.system - before.system) / count);
    }
    console.log(`  ${name.padEnd(38)} ${(median(user) / 1000).toFixed(2)} ms, ${(median(total) / 1000).toFixed(2)} ms`);
  }
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
