import { connect, type Socket } from "node:net";
import type { LoadResult } from "./load.js";

// A load generator must cost less CPU than the servers it measures. This one writes prepared requests and parses only the
// status and the length of responses.

export interface HttpLoadOptions {
  readonly url: string;
  readonly connections: number;
  /** When the load ends. Default: after the given number of requests. */
  readonly seconds?: number;
  /** How many requests to send. Default: no limit. */
  readonly requests?: number;
  /** Returns the bytes of the request with this index. */
  request(index: number): string;
  /** Requests to send per second. Default: closed loop, one in flight per connection. */
  readonly perSecond?: number;
  /** Called with status and latency in milliseconds of each response. If given, any status is accepted. */
  readonly onResponse?: (status: number, tookMs: number) => void;
}

const TICK_MS = 5;
/** All connections read into it: a buffer for each read would cost more than the rest. */
const readBuffer = Buffer.alloc(65_536);
const lastChunkBytes = Buffer.from("0\r\n\r\n");

/** Sends requests over HTTP/1.1, one in flight per connection. Rejects on any status but 200 unless `onResponse` is given. */
export async function runHttpLoad({
  url,
  connections,
  seconds,
  requests = Number.POSITIVE_INFINITY,
  request,
  perSecond,
  onResponse,
}: HttpLoadOptions): Promise<LoadResult> {
  const { hostname, port } = new URL(url);
  let sent = 0;
  let completed = 0;
  let isOver = false;
  const idle: ClientConnection[] = [];
  let fail = (_error: Error): void => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const next = (connection: ClientConnection): void => {
    if (isOver || perSecond !== undefined || sent >= requests) idle.push(connection);
    else connection.send(request(sent++));
  };
  const opened = await Promise.all(
    Array.from({ length: connections }, () =>
      openConnection(hostname, Number(port), fail, (connection, status, tookMs) => {
        completed += 1;
        if (onResponse !== undefined) onResponse(status, tookMs);
        else if (status !== 200) fail(new Error(`unexpected status ${status}`));
        next(connection);
      }),
    ),
  );

  async function finishAll(): Promise<void> {
    while (idle.length < opened.length) await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, 1))]);
  }

  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  for (const connection of opened) next(connection);
  const pace =
    perSecond === undefined
      ? undefined
      : setInterval(() => {
          const due = ((performance.now() - began) / 1000) * perSecond;
          while (sent < due && idle.length > 0) idle.shift()?.send(request(sent++));
        }, TICK_MS);
  try {
    if (seconds === undefined) await finishAll();
    else await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, seconds * 1000))]);
    const took = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(cpuBefore);
    const result = { completed, seconds: took, generatorUtilization: (user + system) / 1e6 / took };
    isOver = true;
    clearInterval(pace);
    await finishAll();
    return result;
  } finally {
    isOver = true;
    clearInterval(pace);
    for (const connection of opened) connection.close();
  }
}

interface ClientConnection {
  send(bytes: string): void;
  close(): void;
}

async function openConnection(
  host: string,
  port: number,
  fail: (error: Error) => void,
  onResponse: (connection: ClientConnection, status: number, tookMs: number) => void,
): Promise<ClientConnection> {
  const onread = {
    buffer: readBuffer,
    callback(bytes: number): boolean {
      read(readBuffer.subarray(0, bytes));
      return true;
    },
  };
  const socket: Socket = connect({ host, port, onread });
  socket.setNoDelay(true);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let isClosed = false;
  let sentAt = 0;
  const connection: ClientConnection = {
    send(bytes) {
      sentAt = performance.now();
      socket.write(bytes, "latin1");
    },
    close() {
      isClosed = true;
      socket.destroy();
    },
  };
  socket.on("error", fail);
  socket.on("close", () => {
    if (!isClosed) fail(new Error("the server closed a connection"));
  });

  let received: Buffer = Buffer.alloc(0);
  let status = 0;
  /** Bytes of the body that are missing, once its length is known. */
  let missing = 0;
  function read(chunk: Buffer): void {
    if (missing > 0) missing -= chunk.length;
    else if (!readHeaders(chunk)) return;
    if (missing < 0) fail(new Error("more bytes than the response has"));
    if (missing === 0) onResponse(connection, status, performance.now() - sentAt);
  }

  /** Returns whether the end of the response is known. */
  function readHeaders(chunk: Buffer): boolean {
    received = Buffer.concat([received, chunk]);
    const headersEnd = received.indexOf("\r\n\r\n");
    if (headersEnd < 0) return false;
    const headers = received.toString("latin1", 0, headersEnd);
    status = Number(headers.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
    const length = /content-length: (\d+)/i.exec(headers)?.[1];
    if (length !== undefined) missing = headersEnd + 4 + Number(length) - received.length;
    // Only one response is in flight, so bytes that end like the last chunk are the end of it.
    else if (!received.subarray(-5).equals(lastChunkBytes)) return false;
    received = Buffer.alloc(0);
    return true;
  }
  return connection;
}
