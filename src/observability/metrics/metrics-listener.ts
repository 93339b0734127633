import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { metricsType } from "./media-type.js";

/** Serves metrics on a port of their own, which callers of the service need not reach. */
export interface MetricsListener {
  /** Rejects where the address cannot be had. */
  listen(): Promise<{ readonly url: string }>;
  close(): Promise<void>;
}

export interface MetricsListenerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly text: () => Promise<string>;
}

const path = "/metrics";
/** Scrapers are few. */
const mostConnections = 64;
const requestMs = 10_000;
const mostHeaderBytes = 8 * 1024;

export function createMetricsListener({ host, port, text }: MetricsListenerOptions): MetricsListener {
  const limits = { headersTimeout: requestMs, requestTimeout: requestMs, maxHeaderSize: mostHeaderBytes };
  const server = createServer(limits, (request, response) => {
    request.resume();
    const [asked] = (request.url ?? "").split("?");
    if (asked !== path) answer(response, 404, `metrics are at ${path}\n`);
    else if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      answer(response, 405, "the method must be GET or HEAD\n");
    } else {
      text().then(
        (metrics) => answer(response, 200, metrics, metricsType),
        () => answer(response, 503, "the metrics cannot be had\n"),
      );
    }
  });
  server.maxConnections = mostConnections;
  server.timeout = requestMs;

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          // A connection that cannot be accepted must not end the process.
          server.on("error", () => {});
          const { address, family, port: own } = server.address() as AddressInfo;
          resolve({ url: `http://${family === "IPv6" ? `[${address}]` : address}:${own}${path}` });
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

function answer(response: ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void {
  const headers = { "content-type": type, "content-length": Buffer.byteLength(text), "cache-control": "no-store" };
  // For HEAD, Node leaves out what is given for the body.
  response.writeHead(status, { ...headers, "x-content-type-options": "nosniff" }).end(text);
}
