import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PROMETHEUS_MEDIA_TYPE } from "./media-type.js";

/** Serves metrics on a separate port, which need not be open to clients of the service. */
export interface MetricsListener {
  /** Rejects with the system error if the address cannot be bound. */
  listen(): Promise<{ readonly url: string }>;
  close(): Promise<void>;
}

export interface MetricsListenerOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly renderText: () => Promise<string>;
}

const METRICS_PATH = "/metrics";
const MAX_CONNECTIONS = 64;
const SCRAPE_TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 8 * 1024;

export function createMetricsListener({ host, port, renderText }: MetricsListenerOptions): MetricsListener {
  const limits = {
    headersTimeout: SCRAPE_TIMEOUT_MS,
    requestTimeout: SCRAPE_TIMEOUT_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const server = createServer(limits, (request, response) => {
    request.resume();
    const [path] = (request.url ?? "").split("?");
    if (path !== METRICS_PATH) sendResponse(response, 404, `metrics are served at ${METRICS_PATH}\n`);
    else if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      sendResponse(response, 405, "the method must be GET or HEAD\n");
    } else {
      renderText().then(
        (metrics) => sendResponse(response, 200, metrics, PROMETHEUS_MEDIA_TYPE),
        () => sendResponse(response, 503, "metrics are unavailable\n"),
      );
    }
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = SCRAPE_TIMEOUT_MS;

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          // A connection that cannot be accepted must not crash the process.
          server.on("error", () => {});
          const { address, family, port: boundPort } = server.address() as AddressInfo;
          resolve({ url: `http://${family === "IPv6" ? `[${address}]` : address}:${boundPort}${METRICS_PATH}` });
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

function sendResponse(
  response: ServerResponse,
  status: number,
  text: string,
  type = "text/plain; charset=utf-8",
): void {
  const headers = { "content-type": type, "content-length": Buffer.byteLength(text), "cache-control": "no-store" };
  // Node.js omits the body for HEAD.
  response.writeHead(status, { ...headers, "x-content-type-options": "nosniff" }).end(text);
}
