import { once } from "node:events";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type ChannelCredentials, Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { BridgeService, GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { buildService } from "../../support/service/build-service.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// A shutdown while fifty callers of every protocol wait for slow responses: every caller gets its response.

const { chains } = inject("network");
const CALLERS = 50;
/** Latency of every chain response, and so of every quote, since each quote reads again. */
const LATENCY_MS = 400;
const REQUEST_TIMEOUT_MS = 30_000;
/** Only a hang takes longer. */
const HANG_MS = 60_000;

let command: string;
const proxies = new Map<string, RpcProxy>();
const services: ServiceProcess[] = [];

beforeAll(async () => {
  command = await buildService();
  for (const [slug, { url }] of Object.entries(chains)) proxies.set(slug, await startRpcProxy(url));
});
afterAll(async () => {
  for (const service of services) if (service.isRunning()) service.signal("SIGKILL");
  await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
});

async function start(): Promise<ServiceProcess> {
  const urls = [...proxies].map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url]);
  const service = await startServiceProcess(command, {
    ...Object.fromEntries(urls),
    REQUEST_TIMEOUT_MS: `${REQUEST_TIMEOUT_MS}`,
    QUOTE_MAX_AGE_MS: "1",
  });
  services.push(service);
  return service;
}

/** Requests a quote of an amount and returns the response. */
type Caller = (amount: string) => Promise<Quote>;

interface Quote {
  readonly amountIn: string;
  readonly estimatedReceived: string;
}

/** Callers of one protocol; those that keep connections share as few as they would. */
interface Protocol {
  readonly name: string;
  open(service: ServiceProcess): { readonly ask: Caller; close(): void };
}

const route = { token: "USDT", fromChain: "polygon", toChain: "arbitrum" };
const pathOf = (amount: string): string => `/v1/quote?${new URLSearchParams({ ...route, amount, slippage: "0.5" })}`;

const rest1: Protocol = {
  name: "GET over HTTP/1.1",
  open({ url }) {
    const agent = new Agent({ keepAlive: true });
    return {
      ask: (amount) =>
        new Promise((resolve, reject) => {
          get(`${url}${pathOf(amount)}`, { agent }, (response) => {
            let text = "";
            response.setEncoding("utf8").on("data", (chunk) => {
              text += chunk;
            });
            response.on("end", () => resolve(JSON.parse(text) as Quote));
            response.on("error", reject);
          }).on("error", reject);
        }),
      close: () => agent.destroy(),
    };
  },
};

const rest2: Protocol = {
  name: "GET over HTTP/2",
  open({ url }) {
    const session: ClientHttp2Session = connectHttp2(url);
    session.on("error", () => {});
    return {
      ask: (amount) =>
        new Promise((resolve, reject) => {
          const stream = session.request({ ":path": pathOf(amount) });
          let text = "";
          stream.setEncoding("utf8").on("data", (chunk) => {
            text += chunk;
          });
          stream.on("end", () => resolve(JSON.parse(text) as Quote));
          stream.on("error", reject);
        }),
      close: () => session.destroy(),
    };
  },
};

const grpc: Protocol = {
  name: "gRPC",
  open({ url }) {
    const client = new Client(new URL(url).host, credentials.createInsecure() as ChannelCredentials);
    return {
      ask: (amount) =>
        new Promise((resolve, reject) => {
          client.makeUnaryRequest(
            `/${BridgeService.typeName}/${BridgeService.method.getQuote.name}`,
            (asked: string) =>
              Buffer.from(
                toBinary(
                  GetQuoteRequestSchema,
                  create(GetQuoteRequestSchema, { ...route, amount: asked, slippage: 0.5 }),
                ),
              ),
            (bytes: Buffer) => fromBinary(GetQuoteResponseSchema, bytes),
            amount,
            (error, answer) => (answer === undefined ? reject(error) : resolve(answer)),
          );
        }),
      close: () => client.close(),
    };
  },
};

function byTransport(name: string, transport: (baseUrl: string) => Transport): Protocol {
  return {
    name,
    open({ url }) {
      const client = createClient(BridgeService, transport(url));
      return {
        ask: (amount) => client.getQuote({ ...route, amount, slippage: 0.5 }),
        close() {},
      };
    },
  };
}

const protocols: readonly Protocol[] = [
  rest1,
  rest2,
  grpc,
  byTransport("Connect, JSON", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ),
  byTransport("Connect, binary, HTTP/2", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true }),
  ),
  byTransport("gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
];

function setLatency(ms: number): void {
  for (const { behaviour } of proxies.values()) behaviour.latencyMs = ms;
}

/** Counts the chain requests in progress. */
function countPendingRequests(): number {
  return [...proxies.values()].flatMap(({ requests }) => requests).filter(({ answeredAt }) => answeredAt === undefined)
    .length;
}

test(`answers ${CALLERS} pending requests of every protocol after SIGTERM and accepts no new ones`, async () => {
  setLatency(0);
  const service = await start();
  const opened = protocols.map((protocol) => ({ ...protocol.open(service), name: protocol.name }));
  try {
    // Every protocol has an open connection already and opens more as needed.
    const firsts = await Promise.all(opened.map(({ ask }) => ask("1000000")));
    expect(new Set(firsts.map(({ estimatedReceived }) => estimatedReceived)).size).toBe(1);

    setLatency(LATENCY_MS);
    for (const proxy of proxies.values()) proxy.reset();
    const all = Array.from({ length: Math.ceil(CALLERS / opened.length) }, () => opened)
      .flat()
      .slice(0, CALLERS);
    let answered = 0;
    const asked = all.map(async ({ name, ask }, index) => {
      const amount = String(50_000_000 + index);
      const got = await ask(amount).catch((error: unknown) => String(error));
      answered += 1;
      const isRight = typeof got === "object" && got.amountIn === amount && BigInt(got.estimatedReceived) > 40_000_000n;
      return { name, isRight, got };
    });
    // All requests have been sent when the first one waits for a chain.
    await expect.poll(countPendingRequests, { interval: 5 }).toBeGreaterThan(0);
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS / 4));
    const answeredBefore = answered;
    const signalledAt = performance.now();
    service.signal("SIGTERM");

    const answers = await Promise.all(asked);
    expect(answers.filter(({ isRight }) => !isRight)).toEqual([]);
    expect(answered - answeredBefore).toBeGreaterThan(CALLERS / 2);
    expect(await service.exitCode).toBe(0);
    // The log is complete too.
    expect(countAccessLines(service)).toBe(CALLERS + firsts.length);
    const tookMs = Math.round(performance.now() - signalledAt);
    expect(tookMs).toBeLessThan(REQUEST_TIMEOUT_MS + HANG_MS);
    process.stdout.write(`drain: ${CALLERS} in flight, 0 failed, ended after ${tookMs} ms\n`);
    await expect(fetch(`${service.url}/v1/available-routes`)).rejects.toThrow();
    expect(service.output().stderr).toBe("");
  } finally {
    for (const { close } of opened) close();
  }
});

test("answers requests on connections that are not yet accepted at SIGTERM", async () => {
  setLatency(0);
  const service = await start();
  // While the process is stopped, the kernel accepts connections and buffers requests.
  service.signal("SIGSTOP");
  const sockets = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connect(service.port, "127.0.0.1").on("error", () => {});
      await once(socket, "connect");
      socket.write("GET /v1/available-routes?token=ETH HTTP/1.1\r\nHost: x\r\n\r\n");
      return socket;
    }),
  );
  const answers = sockets.map(async (socket) => {
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk) => {
      text += chunk;
    });
    await once(socket, "close");
    return text.slice(0, 12);
  });
  service.signal("SIGTERM");
  service.signal("SIGCONT");
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["HTTP/1.1 200"]));
  expect(await service.exitCode).toBe(0);
});

/** Counts the answered requests in the log. */
function countAccessLines(service: ServiceProcess): number {
  return service.output().stdout.split('"msg":"request"').length - 1;
}
