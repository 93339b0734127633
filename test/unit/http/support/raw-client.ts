import { once } from "node:events";
import { Agent, type IncomingHttpHeaders as Http1Headers, request } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { connect, type Socket } from "node:net";
import { closeAfterTest } from "../../../support/close-after-test.js";

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  /** Empty over HTTP/2. */
  readonly trailers: Readonly<Record<string, string | undefined>>;
}

export interface RawRequest {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Agent of HTTP/1.1 requests; without one, each request opens a new connection. */
  readonly agent?: Agent;
}

/** Returns a request with a body. */
export const post = (type: string, body: string | Buffer = "", headers: Record<string, string> = {}) => ({
  ...{ method: "POST", headers: { "content-type": type, ...headers }, body },
});
export const postJson = (body: string | Buffer, headers: Record<string, string> = {}) =>
  post("application/json", body, headers);

/** Creates an agent that keeps one connection, which is closed after the test. */
export function createKeepAliveAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  closeAfterTest({ close: () => agent.destroy() });
  return agent;
}

/** Sends one HTTP/1.1 request with its target unchanged. */
export function sendHttp1(
  port: number,
  path: string,
  { method = "GET", headers = {}, body, agent }: RawRequest = {},
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, path, method, headers, agent: agent ?? false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("error", reject);
      res.on("end", () => resolve({ ...toResponse(res.statusCode ?? 0, res.headers, chunks), trailers: res.trailers }));
    });
    req.on("error", reject);
    req.end(body);
  });
}

/** Opens an HTTP/2 session whose errors only end it. It is closed after the test. */
export function openHttp2(port: number, options: SecureClientSessionOptions = {}): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${port}`, options);
  closeAfterTest({ close: () => session.destroy() });
  return session.on("error", () => {}).setMaxListeners(0);
}

/** Reads a stream to its end: returns its headers and trailers as one, and its body. */
export async function readStream(stream: ClientHttp2Stream): Promise<{ fields: IncomingHttpHeaders; body: string }> {
  const fields: IncomingHttpHeaders = {};
  let body = "";
  stream.on("error", () => {});
  stream.on("response", (headers) => Object.assign(fields, headers));
  stream.on("trailers", (trailers) => Object.assign(fields, trailers));
  stream.on("data", (chunk: Buffer) => {
    body += chunk.toString("latin1");
  });
  if (!stream.closed) await new Promise((resolve) => stream.once("end", resolve).once("close", resolve));
  return { fields, body };
}

/** Sends one HTTP/2 request with prior knowledge on a new connection. */
export async function sendHttp2(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: RawRequest = {},
): Promise<RawResponse> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  try {
    return await sendHttp2On(session, path, { method, headers, ...(body === undefined ? {} : { body }) });
  } finally {
    session.close();
  }
}

/** Sends one HTTP/2 request on an open session. */
export function sendHttp2On(
  session: ClientHttp2Session,
  path: string,
  { method = "GET", headers = {}, body }: RawRequest = {},
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    session.setMaxListeners(0).on("error", reject);
    const stream = session.request({ ":path": path, ":method": method, ...headers });
    const chunks: Buffer[] = [];
    let head: IncomingHttpHeaders = {};
    stream.on("response", (headers) => {
      head = headers;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => {
      session.off("error", reject);
      if (head[":status"] === undefined) reject(new Error(`reset ${stream.rstCode}`));
      else resolve(toResponse(Number(head[":status"]), head, chunks));
    });
    stream.end(body);
  });
}

/** The versions of HTTP, by name. */
export const HTTP_VERSIONS = [
  ["HTTP/1.1", sendHttp1],
  ["HTTP/2", sendHttp2],
] as const;

/** Sends bytes and returns everything received until the server closes the connection. */
export async function sendRawBytes(port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = await openRawSocket(port);
  const text = collectText(socket);
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (!socket.closed) await once(socket, "close");
  return text();
}

/** Opens a connection whose errors only end it. It is closed after the test. */
export async function openRawSocket(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  closeAfterTest({ close: () => socket.destroy() });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Collects what a connection receives from now on. */
export function collectText(socket: Socket): () => string {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  return () => text;
}

function toResponse(
  status: number,
  headers: Http1Headers | IncomingHttpHeaders,
  chunks: readonly Buffer[],
): RawResponse {
  const single = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join() : value]);
  return { status, headers: Object.fromEntries(single), body: Buffer.concat(chunks).toString(), trailers: {} };
}

/** Puts a message into the envelope of gRPC and of Connect's streams. */
export function envelope(message: Uint8Array, flags = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
