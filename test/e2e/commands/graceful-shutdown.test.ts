import { once } from "node:events";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type ChannelCredentials, Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BridgeService, GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { buildService } from "../../support/service/build-service.js";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";

// A shutdown while fifty callers of every protocol wait for slow responses: every caller gets its response.

const CALLERS = 50;
const REQUEST_TIMEOUT_MS = 30_000;

let command: string;
const proxies = useChainProxies();
const services: ServiceProcess[] = [];

beforeAll(async () => {
  command = await buildService();
});
afterAll(() => {
  for (const service of services) if (service.isRunning()) service.signal("SIGKILL");
});

async function start(): Promise<ServiceProcess> {
  const service = await startServiceProcess(command, {
    ...toRpcEnvironment(proxies),
    REQUEST_TIMEOUT_MS: `${REQUEST_TIMEOUT_MS}`,
    QUOTE_MAX_AGE_MS: "1",
  });
  services.push(service);
  return service;
}

type Caller = (asked: Asked) => Promise<Quote>;

interface Quote {
  readonly amountIn: string;
  readonly estimatedReceived: string;
}

/** Callers of one protocol; those that keep connections share as few as they would. */
interface Protocol {
  readonly name: string;
  open(service: ServiceProcess): { readonly ask: Caller; close(): void };
}

/** Read before the chains stop answering, and a route of other chains, for which there is no older state. */
const first = { token: "DAI", fromChain: "optimism", toChain: "gnosis", amount: "5000000000000000000" };
const route = { token: "USDT", fromChain: "polygon", toChain: "arbitrum" };

/** A transfer to quote. */
interface Asked {
  readonly token: string;
  readonly fromChain: string;
  readonly toChain: string;
  readonly amount: string;
}

const pathOf = (asked: Asked): string => `/v1/quote?${new URLSearchParams({ ...asked, slippage: "0.5" })}`;

const rest1: Protocol = {
  name: "GET over HTTP/1.1",
  open({ url }) {
    const agent = new Agent({ keepAlive: true });
    return {
      ask: (asked) =>
        new Promise((resolve, reject) => {
          get(`${url}${pathOf(asked)}`, { agent }, (response) => {
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
      ask: (asked) =>
        new Promise((resolve, reject) => {
          const stream = session.request({ ":path": pathOf(asked) });
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
      ask: (asked) =>
        new Promise((resolve, reject) => {
          client.makeUnaryRequest(
            `/${BridgeService.typeName}/${BridgeService.method.getQuote.name}`,
            (message: Asked) =>
              Buffer.from(
                toBinary(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { ...message, slippage: 0.5 })),
              ),
            (bytes: Buffer) => fromBinary(GetQuoteResponseSchema, bytes),
            asked,
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
        ask: (asked) => client.getQuote({ ...asked, slippage: 0.5 }),
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

/** Counts the quotes that have begun and not ended. */
async function countPendingQuotes({ metricsUrl }: ServiceProcess): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text();
  return Number(/^hop_gateway_requests_in_progress (\d+)$/m.exec(metrics)?.[1]);
}

/** Returns whether new connections are accepted, without a request that would be in the log. */
function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

test(`answers ${CALLERS} pending requests of every protocol after SIGTERM and accepts no new ones`, async () => {
  const service = await start();
  const opened = protocols.map((protocol) => ({ ...protocol.open(service), name: protocol.name }));
  try {
    // Every protocol has an open connection already and opens more as needed.
    const firsts = await Promise.all(opened.map(({ ask }) => ask(first)));
    expect(new Set(firsts.map(({ estimatedReceived }) => estimatedReceived)).size).toBe(1);

    let answerChains = (): void => {};
    const answersAfter = new Promise<void>((resolve) => {
      answerChains = resolve;
    });
    for (const { behaviour } of proxies.values()) behaviour.answersAfter = answersAfter;
    const all = Array.from({ length: Math.ceil(CALLERS / opened.length) }, () => opened)
      .flat()
      .slice(0, CALLERS);
    const asked = all.map(async ({ name, ask }, index) => {
      const amount = String(50_000_000 + index);
      const got = await ask({ ...route, amount }).catch((error: unknown) => String(error));
      const isRight = typeof got === "object" && got.amountIn === amount && BigInt(got.estimatedReceived) > 40_000_000n;
      return { name, isRight, got };
    });
    await expect.poll(() => countPendingQuotes(service)).toBe(CALLERS);
    const signalledAt = performance.now();
    service.signal("SIGTERM");
    await expect.poll(() => isListening(service.port)).toBe(false);
    answerChains();

    const answers = await Promise.all(asked);
    expect(answers.filter(({ isRight }) => !isRight)).toEqual([]);
    expect(await service.exitCode).toBe(0);
    // The log is complete too.
    expect(countAccessLines(service)).toBe(CALLERS + firsts.length);
    const tookMs = Math.round(performance.now() - signalledAt);
    process.stdout.write(`drain: ${CALLERS} in flight, 0 failed, ended after ${tookMs} ms\n`);
    expect(service.output().stderr).toBe("");
  } finally {
    for (const { behaviour } of proxies.values()) behaviour.answersAfter = undefined;
    for (const { close } of opened) close();
  }
});

test("answers requests on connections that are not yet accepted at SIGTERM", async () => {
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
