import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";

type Fields = Readonly<Record<string, string>>;

/** How a request ended. */
export type HttpResult =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: Fields;
      readonly trailers: Fields;
      readonly body: Buffer;
      readonly isHead: boolean;
    }
  /** The server closed the connection, or reset the stream, instead. */
  | { readonly kind: "closed" }
  /** No response arrived in time. */
  | { readonly kind: "silent" };

/** A request that is sent without validation. */
export interface RawHttpRequest {
  readonly isHttp2: boolean;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  /** undefined: no body and no Content-Length. */
  readonly body: Buffer | undefined;
}

/** Sends concurrent requests over a pool of persistent connections. */
export interface HttpConnections {
  send(request: RawHttpRequest): Promise<HttpResult>;
  close(): void;
}

/** Only a hang takes longer, also on a busy machine. */
const RESPONSE_TIMEOUT_MS = 120_000;
const HTTP1_CONNECTIONS = 16;
const HTTP2_CONNECTIONS = 4;

export function createHttpConnections(port: number): HttpConnections {
  const idle: Http1Connection[] = Array.from({ length: HTTP1_CONNECTIONS }, () => createHttp1Connection(port));
  const connections = [...idle];
  const waiting: ((connection: Http1Connection) => void)[] = [];
  const sessions: (ClientHttp2Session | undefined)[] = Array.from({ length: HTTP2_CONNECTIONS }, () => undefined);
  let nextSession = 0;

  async function sendHttp1(request: RawHttpRequest): Promise<HttpResult> {
    const connection = idle.pop() ?? (await new Promise<Http1Connection>((resolve) => waiting.push(resolve)));
    try {
      return await connection.send(toBytes(request), request.method === "HEAD");
    } finally {
      const next = waiting.shift();
      if (next === undefined) idle.push(connection);
      else next(connection);
    }
  }

  function getSession(): ClientHttp2Session {
    nextSession = (nextSession + 1) % HTTP2_CONNECTIONS;
    const current = sessions[nextSession];
    if (current !== undefined && !current.closed && !current.destroyed) return current;
    const opened = connectHttp2(`http://127.0.0.1:${port}`).setMaxListeners(0);
    opened.on("error", () => {});
    sessions[nextSession] = opened;
    return opened;
  }

  return {
    send: (request) => (request.isHttp2 ? sendHttp2(getSession(), request) : sendHttp1(request)),
    close() {
      for (const connection of connections) connection.close();
      for (const session of sessions) session?.destroy();
    },
  };
}

function toBytes({ method, target, headers, body }: RawHttpRequest): Buffer {
  const length = body === undefined ? [] : ([["Content-Length", String(body.length)]] as const);
  const lines = [["Host", "x"] as const, ...headers, ...length].map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
  return body === undefined ? head : Buffer.concat([head, body]);
}

interface Http1Connection {
  send(bytes: Buffer, isHead: boolean): Promise<HttpResult>;
  close(): void;
}

/** Sends one request at a time on one connection, and reconnects when the server has closed it or soon may. */
function createHttp1Connection(port: number): Http1Connection {
  let socket: Socket | undefined;
  let received: Buffer = Buffer.alloc(0);
  let onChange = (_isClosed: boolean): void => {};
  /** When the server may close the connection if it is idle until then. */
  let expiresAt = Number.POSITIVE_INFINITY;

  function closeIfExpired(): void {
    const expired = performance.now() < expiresAt ? undefined : socket;
    if (expired === undefined) return;
    socket = undefined;
    expired.destroy();
  }

  function open(): Socket {
    const opened = connect(port, "127.0.0.1");
    opened.setNoDelay(true);
    opened.on("data", (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      onChange(false);
    });
    opened.on("error", () => {});
    opened.on("close", () => {
      if (socket !== opened) return;
      socket = undefined;
      onChange(true);
    });
    return opened;
  }

  return {
    send(bytes, isHead) {
      received = Buffer.alloc(0);
      closeIfExpired();
      socket ??= open();
      return new Promise((resolve) => {
        const done = (answer: HttpResult, isReusable: boolean): void => {
          clearTimeout(timer);
          onChange = () => {};
          const seconds = answer.kind === "answer" && /timeout=(\d+)/.exec(answer.headers["keep-alive"] ?? "")?.[1];
          expiresAt = seconds ? performance.now() + Number(seconds) * 1000 : Number.POSITIVE_INFINITY;
          if (!isReusable) {
            const used = socket;
            socket = undefined;
            used?.destroy();
          }
          resolve(answer);
        };
        const timer = setTimeout(() => done({ kind: "silent" }, false), RESPONSE_TIMEOUT_MS);
        onChange = (isClosed) => {
          const read = parseResponse(received, isHead, isClosed);
          if (read !== undefined) done(read.answer, read.isReusable && !isClosed);
          else if (isClosed) done({ kind: "closed" }, false);
        };
        socket?.write(bytes);
      });
    },
    close() {
      const used = socket;
      socket = undefined;
      used?.destroy();
    },
  };
}

/** Parses the response at the start of the received bytes; returns undefined while it is incomplete. */
function parseResponse(
  bytes: Buffer,
  isHead: boolean,
  isClosed: boolean,
): { answer: HttpResult; isReusable: boolean } | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
  const remaining = bytes.subarray(end + 4);
  // 100 Continue precedes the response.
  if (status < 200) return parseResponse(remaining, isHead, isClosed);
  const headers = parseHeaderLines(lines);
  const whole = (body: Buffer, trailers: Fields, left: number) => ({
    answer: { kind: "answer", status, headers, trailers, body, isHead } as const,
    isReusable: headers.connection !== "close" && left === 0,
  });
  if (isHead || status === 204 || status === 304) return whole(Buffer.alloc(0), {}, remaining.length);
  if (headers["transfer-encoding"] === "chunked") {
    const read = parseChunkedBody(remaining);
    return read && whole(read.body, read.trailers, remaining.length - read.length);
  }
  if (headers["content-length"] === undefined) return isClosed ? whole(remaining, {}, 0) : undefined;
  const length = Number(headers["content-length"]);
  return remaining.length < length ? undefined : whole(remaining.subarray(0, length), {}, remaining.length - length);
}

function parseChunkedBody(bytes: Buffer): { body: Buffer; trailers: Fields; length: number } | undefined {
  const chunks: Buffer[] = [];
  for (let offset = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", offset);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", offset, lineEnd), 16);
    const from = lineEnd + 2;
    if (size === 0) {
      if (bytes.toString("latin1", from, from + 2) === "\r\n") {
        return { body: Buffer.concat(chunks), trailers: {}, length: from + 2 };
      }
      const end = bytes.indexOf("\r\n\r\n", from);
      if (end < 0) return undefined;
      const trailers = parseHeaderLines(bytes.toString("latin1", from, end).split("\r\n"));
      return { body: Buffer.concat(chunks), trailers, length: end + 4 };
    }
    offset = from + size + 2;
    if (bytes.length < offset) return undefined;
    chunks.push(bytes.subarray(from, from + size));
  }
}

function parseHeaderLines(lines: readonly string[]): Fields {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

function sendHttp2(
  session: ClientHttp2Session,
  { method, target, headers, body }: RawHttpRequest,
): Promise<HttpResult> {
  return new Promise((resolve) => {
    let stream: ReturnType<ClientHttp2Session["request"]>;
    const sent: Record<string, string | string[]> = { ":method": method, ":path": target };
    for (const [name, value] of headers) {
      const previous = sent[name.toLowerCase()];
      sent[name.toLowerCase()] = previous === undefined ? value : [previous, value].flat();
    }
    try {
      stream = session.request(sent, { endStream: body === undefined });
    } catch {
      // Node's client refuses to send this header.
      resolve({ kind: "closed" });
      return;
    }
    let head: Fields = {};
    let trailers: Fields = {};
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      resolve({ kind: "silent" });
      stream.destroy();
    }, RESPONSE_TIMEOUT_MS);
    stream.on("response", (received) => {
      head = received as unknown as Fields;
    });
    stream.on("trailers", (received) => {
      trailers = received as unknown as Fields;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => {});
    stream.on("close", () => {
      clearTimeout(timer);
      const status = Number(head[":status"]);
      const isAnswered = stream.rstCode === 0 && !Number.isNaN(status);
      const isHead = method === "HEAD";
      resolve(
        isAnswered
          ? { kind: "answer", status, headers: head, trailers, body: Buffer.concat(chunks), isHead }
          : { kind: "closed" },
      );
    });
    if (body !== undefined) stream.end(body);
  });
}
