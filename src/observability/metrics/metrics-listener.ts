import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { DynamicDocument } from "../../http/documents.js";

/** Serves metrics and liveness on a separate port, which need not be open to clients of the service. */
export interface MetricsListener {
  /**
   * Listens on a port; 0 picks a free one. May be called again after a failure. Returns the URL of the metrics.
   * Rejects with the system error if the address cannot be bound.
   */
  listen(port: number): Promise<string>;
  close(): Promise<void>;
}

export interface MetricsListenerOptions {
  readonly host: string;
  /** By path. A document that throws is answered with 503. */
  readonly documents: ReadonlyMap<string, () => DynamicDocument | Promise<DynamicDocument>>;
}

/** Beyond it, a new connection closes the oldest one: a probe gets through even if others hold all connections. */
const MAX_CONNECTIONS = 64;
/** Time for the headers, for the whole request, for the response, and without any byte. */
const EXCHANGE_TIMEOUT_MS = 10_000;
/** Node.js enforces the first two only when it checks the connections, by default every 30 s. */
const CHECK_INTERVAL_MS = 2_000;
const MAX_HEADER_BYTES = 8 * 1024;

export function createMetricsListener({ host, documents }: MetricsListenerOptions): MetricsListener {
  /** Open connections, oldest first. */
  const connections = new Set<Socket>();
  /** Connections with a response in progress. */
  const busy = new WeakSet<Socket>();
  const limits = {
    headersTimeout: EXCHANGE_TIMEOUT_MS,
    requestTimeout: EXCHANGE_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const server = createServer(limits, (request, response) => {
    const { socket } = request;
    request.resume();
    // Node.js handles pipelined requests at the same time: thousands of responses could wait for one reader.
    if (busy.has(socket)) {
      socket.destroy();
      return;
    }
    busy.add(socket);
    // Not a socket timeout, which every byte that is read would restart.
    const deadline = setTimeout(() => socket.destroy(), EXCHANGE_TIMEOUT_MS);
    response.once("close", () => {
      busy.delete(socket);
      clearTimeout(deadline);
    });
    const [path = ""] = (request.url ?? "").split("?");
    const read = documents.get(path);
    if (read === undefined) sendText(response, 404, `this port serves ${[...documents.keys()].join(" and ")}\n`);
    else if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      sendText(response, 405, "the method must be GET or HEAD\n");
    } else {
      Promise.resolve()
        .then(read)
        .then(
          (document) => sendDocument(response, document),
          () => sendText(response, 503, `${path} is unavailable\n`),
        );
    }
  });
  server.timeout = EXCHANGE_TIMEOUT_MS;
  server.on("connection", (socket) => {
    const [oldest] = connections;
    if (oldest !== undefined && connections.size >= MAX_CONNECTIONS) {
      connections.delete(oldest);
      oldest.destroy();
    }
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });

  return {
    listen: (port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          // A connection that cannot be accepted must not crash the process.
          server.on("error", () => {});
          const { address, family, port: boundPort } = server.address() as AddressInfo;
          resolve(`http://${family === "IPv6" ? `[${address}]` : address}:${boundPort}/metrics`);
        });
      }),
    async close() {
      if (!server.listening) return;
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function sendText(response: ServerResponse, status: number, body: string): void {
  sendDocument(response, { status, contentType: "text/plain; charset=utf-8", body });
}

function sendDocument(response: ServerResponse, { status, contentType, body }: DynamicDocument): void {
  const headers = {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  // Node.js omits the body for HEAD.
  response.writeHead(status, headers).end(body);
}
