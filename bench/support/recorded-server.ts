import { mkdtempSync, openSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway } from "../../src/app/gateway.js";
import { loadConfig } from "../../src/config/config.js";

/** A recorded response, without the headers that node:http adds itself (Date, Connection, Keep-Alive). */
export interface RecordedResponse {
  readonly status: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string;
}

const HEADERS_ADDED_BY_NODE = new Set(["date", "connection", "keep-alive"]);

/** Starts a gateway, without log output unless the environment says otherwise. Returns its URL. */
export async function serveGateway(environment: Readonly<Record<string, string>>): Promise<string> {
  const gateway = await createGateway(
    loadConfig({ HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", LOG_LEVEL: "silent", ...environment }),
  );
  return (await gateway.start()).url;
}

/** Starts a bare node:http server that sends one response to every request. Returns its URL. */
export async function serveRecordedResponse({ status, headers, body }: RecordedResponse): Promise<string> {
  const bytes = Buffer.from(body);
  return listenOnFreePort(
    createServer((request, response) => {
      // The body must be consumed before the next request on the connection is read.
      if (request.method === "POST") {
        request.resume().once("end", () => response.writeHead(status, [...headers]).end(bytes));
      } else response.writeHead(status, [...headers]).end(bytes);
    }),
  );
}

/** Records a response for {@link serveRecordedResponse}. */
export async function recordResponse(url: string, init: RequestInit = {}): Promise<RecordedResponse> {
  const response = await fetch(url, init);
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body}`);
  const headers = [...response.headers].filter(([name]) => !HEADERS_ADDED_BY_NODE.has(name)).flat();
  return { status: response.status, headers, body };
}

/** Opens a file for a log that nobody reads. It has no name, so it goes with the last process that has it open. */
export function openTemporaryFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "hop-log-"));
  const descriptor = openSync(join(folder, "log"), "w");
  rmSync(folder, { recursive: true });
  return descriptor;
}

/** Listens on a free port of 127.0.0.1. Returns the URL. */
export async function listenOnFreePort(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
