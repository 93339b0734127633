import { connect, type Socket } from "node:net";

// A load generator has to cost less than the servers that it measures, and on two cores a general one does not: this
// one writes requests as they are given and reads of answers only status and length.

export interface HttpLoadOptions {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** The bytes of a request, by its number. */
  request(index: number): string;
  /** How many to send a second; default: as many as are answered. */
  readonly perSecond?: number;
  /** Told of each answer: its status, and milliseconds since its request. Where it is given, any status is taken. */
  readonly onResponse?: (status: number, tookMs: number) => void;
}

/** What a load came to. */
export interface LoadResult {
  readonly completed: number;
  readonly seconds: number;
  /** Share of the time in which the generator itself was busy: near 1 it is what was measured. */
  readonly generatorUtilization: number;
}

const TICK_MS = 5;
const lastChunkBytes = Buffer.from("0\r\n\r\n");

/** A GET request, for {@link HttpLoadOptions}. */
export function buildGetRequest(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`;
}

/** A POST request, for {@link HttpLoadOptions}. */
export function buildPostRequest(path: string, contentType: string, body: string): string {
  const length = Buffer.byteLength(body);
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** Asks over HTTP/1.1, one request at a time on each connection. Rejects at any answer but 200, but see `onAnswer`. */
export async function runHttpLoad({
  url,
  connections,
  seconds,
  request,
  perSecond,
  onResponse,
}: HttpLoadOptions): Promise<LoadResult> {
  const { hostname, port } = new URL(url);
  let sent = 0;
  let completed = 0;
  let isOver = false;
  const idle: Caller[] = [];
  let fail = (_error: Error): void => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const next = (caller: Caller): void => {
    if (isOver || perSecond !== undefined) idle.push(caller);
    else caller.send(request(sent++));
  };
  const callers = await Promise.all(
    Array.from({ length: connections }, () =>
      openCaller(hostname, Number(port), fail, (caller, status, tookMs) => {
        completed += 1;
        if (onResponse !== undefined) onResponse(status, tookMs);
        else if (status !== 200) fail(new Error(`an answer with status ${status}`));
        next(caller);
      }),
    ),
  );

  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  for (const caller of callers) next(caller);
  const pace =
    perSecond === undefined
      ? undefined
      : setInterval(() => {
          const due = ((performance.now() - began) / 1000) * perSecond;
          while (sent < due && idle.length > 0) idle.shift()?.send(request(sent++));
        }, TICK_MS);
  try {
    await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, seconds * 1000))]);
    const took = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(cpuBefore);
    const result = { completed, seconds: took, generatorUtilization: (user + system) / 1e6 / took };
    isOver = true;
    clearInterval(pace);
    while (idle.length < callers.length) await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, 1))]);
    return result;
  } finally {
    isOver = true;
    clearInterval(pace);
    for (const caller of callers) caller.close();
  }
}

interface Caller {
  send(bytes: string): void;
  close(): void;
}

async function openCaller(
  host: string,
  port: number,
  fail: (error: Error) => void,
  onAnswer: (caller: Caller, status: number, tookMs: number) => void,
): Promise<Caller> {
  const socket: Socket = connect(port, host);
  socket.setNoDelay(true);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let isClosed = false;
  let received: Buffer = Buffer.alloc(0);
  let sentAt = 0;
  const caller: Caller = {
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
  socket.on("data", (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const headersEnd = received.indexOf("\r\n\r\n");
    if (headersEnd < 0) return;
    const headers = received.toString("latin1", 0, headersEnd);
    const length = /content-length: (\d+)/i.exec(headers)?.[1];
    // One answer at a time is under way, so what ends like the last chunk is the end.
    const isWhole =
      length === undefined
        ? received.subarray(-5).equals(lastChunkBytes)
        : received.length === headersEnd + 4 + Number(length);
    if (!isWhole) return;
    received = Buffer.alloc(0);
    onAnswer(caller, Number(headers.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length)), performance.now() - sentAt);
  });
  return caller;
}
