import { Agent, type IncomingMessage, request } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { attackerAddress } from "../../../test/support/attacks/caller-addresses.js";
import type { Flood } from "../../../test/support/attacks/http2-flood.js";

/** Batches of quotes that cost the service more than they cost their caller. */
export type BatchAttack = "gzip-protobuf" | "gzip-json" | "gzip-grpc" | "gzip-grpc-web" | "gzip-streams" | "batches";

export interface BatchAttackOptions {
  readonly port: number;
  /** Number of callers who take part. */
  readonly callers: number;
}

const PATH = "/hop.bridge.v1.BridgeService/BatchGetQuotes";
/** What a message may have after decompression. */
const MESSAGE_BYTES = 64 * 1024 - 64;
const PER_SECOND = 100;
const BATCH_CONNECTIONS = 100;
const QUOTES_PER_BATCH = 100;
const STREAMS = 240;
const TICK_MS = 10;

/** 64 KB of empty `requests`, which gzip makes 100 bytes. */
const EMPTY_REQUESTS = Buffer.alloc(MESSAGE_BYTES, Buffer.from([(8 << 3) | 2, 0]));
const EMPTY_REQUESTS_JSON = Buffer.from(`{"requests":[{}${",{}".repeat(Math.floor(MESSAGE_BYTES / 3) - 8)}]}`);

/** Starts an attack, which lasts until it is closed. */
export function startBatchAttack(name: BatchAttack, options: BatchAttackOptions): Flood {
  switch (name) {
    case "gzip-protobuf":
      return sendSteadily(options, gzipSync(EMPTY_REQUESTS), {
        "content-type": "application/proto",
        "content-encoding": "gzip",
      });
    case "gzip-json":
      return sendSteadily(options, gzipSync(EMPTY_REQUESTS_JSON), {
        "content-type": "application/json",
        "content-encoding": "gzip",
      });
    case "gzip-grpc-web":
      return sendSteadily(options, encodeCompressed(EMPTY_REQUESTS), {
        "content-type": "application/grpc-web+proto",
        "grpc-encoding": "gzip",
      });
    case "gzip-grpc":
      return sendStreams(options, PER_SECOND / 10, 100);
    case "gzip-streams":
      return sendStreams(options, STREAMS, 2_000);
    case "batches":
      return repeatBatches(options);
  }
}

/** Sends requests at a steady rate, whether they are answered or not. */
function sendSteadily(options: BatchAttackOptions, body: Buffer, headers: Readonly<Record<string, string>>): Flood {
  const sender = new Http1Sender(options);
  const began = performance.now();
  const timer = setInterval(() => {
    while (sender.sent < ((performance.now() - began) / 1_000) * PER_SECOND) void sender.post(body, headers);
  }, TICK_MS);
  return sender.toFlood(() => clearInterval(timer));
}

/** Sends batches of expensive quotes, each as soon as the one before is answered. */
function repeatBatches(options: BatchAttackOptions): Flood {
  const sender = new Http1Sender(options);
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) await sender.post(createBatch(sender.sent), { "content-type": "application/json" });
  };
  for (let count = 0; count < BATCH_CONNECTIONS; count += 1) void run();
  return sender.toFlood(() => {
    isOver = true;
  });
}

/** Returns a batch of quotes that search for their amount, each another one. */
export function createBatch(seed: number): Buffer {
  const quotes = Array.from({ length: QUOTES_PER_BATCH }, (_, index) => ({
    receiveAmount: String(1_000_000 + ((seed * QUOTES_PER_BATCH + index) % 9_000_000)),
    ...{ token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5, view: "FULL" },
  }));
  return Buffer.from(JSON.stringify({ requests: quotes }));
}

/** Posts over kept-alive connections. */
class Http1Sender {
  readonly #options: BatchAttackOptions;
  readonly #agents: readonly Agent[];
  #open = 0;
  sent = 0;

  constructor(options: BatchAttackOptions) {
    this.#options = options;
    const maxSockets = Math.ceil((2 * BATCH_CONNECTIONS) / options.callers);
    this.#agents = Array.from({ length: options.callers }, () => new Agent({ keepAlive: true, maxSockets }));
  }

  /** Resolves when the response has been read, or the connection has failed. */
  post(body: Buffer, headers: Readonly<Record<string, string>>): Promise<void> {
    const { port, callers } = this.#options;
    const caller = this.sent % callers;
    const localAddress = attackerAddress(caller, callers);
    this.sent += 1;
    this.#open += 1;
    return new Promise((resolve) => {
      const end = (): void => {
        this.#open -= 1;
        resolve();
      };
      const call = request(
        {
          port,
          host: "127.0.0.1",
          method: "POST",
          path: PATH,
          agent: this.#agents[caller],
          headers: { ...headers, "content-length": body.length },
          ...(localAddress && { localAddress }),
        },
        (response: IncomingMessage) => response.resume().once("close", end),
      );
      call.once("error", end);
      call.end(body);
    });
  }

  toFlood(stop: () => void): Flood {
    return {
      openConnections: () =>
        this.#agents.reduce(
          (sum, { sockets, freeSockets }) => sum + countSockets(sockets) + countSockets(freeSockets),
          0,
        ),
      openRequests: () => this.#open,
      sentRequests: () => this.sent,
      close: () => {
        stop();
        for (const agent of this.#agents) agent.destroy();
      },
    };
  }
}

function countSockets(byHost: NodeJS.ReadOnlyDict<readonly unknown[]>): number {
  return Object.values(byHost).reduce((sum, sockets = []) => sum + sockets.length, 0);
}

/** Opens so many streams of compressed batches at once, again and again. */
function sendStreams({ port, callers }: BatchAttackOptions, streams: number, intervalMs: number): Flood {
  const body = encodeCompressed(EMPTY_REQUESTS);
  const headers = {
    ":method": "POST",
    ":path": PATH,
    "content-type": "application/grpc",
    "grpc-encoding": "gzip",
    te: "trailers",
  };
  const sessions = Array.from({ length: callers }, (_, caller): ClientHttp2Session => {
    const localAddress = attackerAddress(caller, callers);
    const socket = connect({ port, host: "127.0.0.1", ...(localAddress && { localAddress }) });
    return connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => socket }).on("error", () => {});
  });
  let [sent, open] = [0, 0];
  const timer = setInterval(() => {
    for (let count = 0; count < streams; count += 1) {
      const session = sessions[sent % callers];
      if (session === undefined || session.closed) continue;
      const stream = session.request(headers).on("error", () => {});
      stream.once("close", () => {
        open -= 1;
      });
      stream.resume().end(body);
      sent += 1;
      open += 1;
    }
  }, intervalMs);
  return {
    openConnections: () => sessions.filter(({ closed }) => !closed).length,
    openRequests: () => open,
    sentRequests: () => sent,
    close() {
      clearInterval(timer);
      for (const session of sessions) session.destroy();
    },
  };
}

/** Puts a message into the envelope of a compressed message of gRPC. */
function encodeCompressed(message: Buffer): Buffer {
  const compressed = gzipSync(message);
  const prefix = Buffer.alloc(5, 1);
  prefix.writeUInt32BE(compressed.length, 1);
  return Buffer.concat([prefix, compressed]);
}
