import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { DynamicDocument } from "../../http/documents.js";

/** Beyond it, a new connection closes the oldest one: a probe gets through even if others hold all connections. */
const MAX_CONNECTIONS = 64;
/** Time for the headers, for the whole request, for the response, and without any byte. */
const EXCHANGE_TIMEOUT_MS = 10_000;
/** Node.js enforces the first two only when it checks the connections, by default every 30 s. */
const CHECK_INTERVAL_MS = 2_000;
const MAX_HEADER_BYTES = 8 * 1024;

/** Serves metrics and liveness on a separate port, which need not be open to clients of the service. */
export class MetricsListener {
  readonly #host: string;
  readonly #documents: ReadonlyMap<string, () => DynamicDocument | Promise<DynamicDocument>>;
  readonly #server: Server;
  /** Open connections, oldest first. */
  readonly #connections = new Set<Socket>();
  /** Connections with a response in progress. */
  readonly #busy = new WeakSet<Socket>();

  /** @param documents by path. One that throws is answered with 503. */
  constructor(host: string, documents: ReadonlyMap<string, () => DynamicDocument | Promise<DynamicDocument>>) {
    this.#host = host;
    this.#documents = documents;
    const limits = {
      headersTimeout: EXCHANGE_TIMEOUT_MS,
      requestTimeout: EXCHANGE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    };
    this.#server = createServer(limits, (request, response) => this.#serve(request, response));
    this.#server.timeout = EXCHANGE_TIMEOUT_MS;
    this.#server.on("connection", (socket) => this.#admit(socket));
  }

  /**
   * Listens on a port; 0 picks a free one. May be called again after a failure. Returns the URL of the metrics.
   * Rejects with the system error if the address cannot be bound.
   */
  listen(port: number): Promise<string> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, this.#host, () => {
        server.off("error", reject);
        // A connection that cannot be accepted must not crash the process.
        server.on("error", () => {});
        const { address, family, port: boundPort } = server.address() as AddressInfo;
        resolve(`http://${family === "IPv6" ? `[${address}]` : address}:${boundPort}/metrics`);
      });
    });
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  #admit(socket: Socket): void {
    const connections = this.#connections;
    const [oldest] = connections;
    if (oldest !== undefined && connections.size >= MAX_CONNECTIONS) {
      connections.delete(oldest);
      oldest.destroy();
    }
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    request.resume();
    // Node.js handles pipelined requests at the same time: thousands of responses could wait for one reader.
    if (this.#busy.has(socket)) {
      socket.destroy();
      return;
    }
    this.#busy.add(socket);
    // Not a socket timeout, which every byte that is read would restart.
    const deadline = setTimeout(() => socket.destroy(), EXCHANGE_TIMEOUT_MS);
    response.once("close", () => {
      this.#busy.delete(socket);
      clearTimeout(deadline);
    });
    const [path = ""] = (request.url ?? "").split("?");
    const read = this.#documents.get(path);
    if (read === undefined) sendText(response, 404, `this port serves ${[...this.#documents.keys()].join(" and ")}\n`);
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
  }
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
