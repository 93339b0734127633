import { once } from "node:events";
import { type Agent, type IncomingHttpHeaders as Http1Headers, request } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect, type Socket } from "node:net";

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

/** Sends bytes and returns everything received until the server closes the connection. */
export async function sendRawBytes(port: number, ...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = await openRawSocket(port);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (!socket.closed) await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}

/** Opens a connection whose errors only end it. */
export async function openRawSocket(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
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
