import { createServer } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WatchTransfersRequestSchema, WatchTransfersResponseSchema } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { computeRetryDelayMs } from "../../src/client/error-details.js";
import { attackerAddress } from "../../test/support/attacks/caller-addresses.js";
import { parseMark } from "./changing-index.js";
import { listenOnFreePort } from "./recorded-server.js";

// Thousands of watchers in a process of their own. Each resumes when its stream ends, as docs/clients.md says: with its token,
// after the `retry` of Server-Sent Events or a back-off with jitter, and after `Retry-After`.

export type WatchProtocol = "SSE, HTTP/1.1" | "SSE, HTTP/2" | "gRPC";

export interface WatchersInput {
  readonly url: string;
  readonly protocol: WatchProtocol;
  readonly count: number;
  /** Addresses among which they are divided. */
  readonly callers: number;
  /** Each watches one of these, in turn. */
  readonly transferIds: readonly string[];
}

/** What the watchers have seen since the last report. */
export interface WatchersReport {
  /** Watchers whose stream is open and has sent something. */
  readonly open: number;
  readonly received: number;
  /** Changes that a watcher was told of again, or after a later one. */
  readonly repeated: number;
  /** Changes that a watcher with an open stream was not told of, because a later one came first. */
  readonly skipped: number;
  /** Milliseconds from change to message, of watchers with an open stream. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly reconnects: number;
  /** Attempts that failed, by cause. */
  readonly failures: Readonly<Record<string, number>>;
  /** When the last stream was opened, in milliseconds since 1970. */
  readonly lastOpenedAt: number;
  /** The number of the last change that each watcher knows. */
  readonly known: readonly number[];
}

const STREAMS_PER_SESSION = 200;
const OPENED_AT_ONCE = 100;
/** As EventSource in browsers, until the server says another. */
const DEFAULT_RETRY_MS = 3_000;
const GRPC_PREFIX_BYTES = 5;
const GRPC_PATH = "/hop.bridge.v1.BridgeService/WatchTransfers";

/** Starts the watchers; resolves with the URL of their reports when all streams are open. */
export async function serveWatchers(input: WatchersInput): Promise<string> {
  const watchers = new Watchers(input);
  await watchers.openAll();
  return listenOnFreePort(createServer((_, res) => res.end(JSON.stringify(watchers.report()))));
}

/** Fetches a report from the process of the watchers. */
export async function fetchReport(url: string): Promise<WatchersReport> {
  return (await (await fetch(url)).json()) as WatchersReport;
}

/** How an attempt ended: `retryAfterSeconds` if the server said so. */
interface Ending {
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

class Watchers {
  readonly #watchers: Watcher[];
  #latencies: number[] = [];
  #received = 0;
  #repeated = 0;
  #skipped = 0;
  #reconnects = 0;
  #failures: Record<string, number> = {};
  #lastOpenedAt = 0;
  #onOpen = (): void => {};

  constructor(input: WatchersInput) {
    const openStream = createOpener(input);
    this.#watchers = Array.from({ length: input.count }, (_, index) => new Watcher(index, openStream, this));
  }

  /** Opens the streams, some at a time. */
  async openAll(): Promise<void> {
    for (let start = 0; start < this.#watchers.length; start += OPENED_AT_ONCE) {
      const batch = this.#watchers.slice(start, start + OPENED_AT_ONCE);
      for (const watcher of batch) watcher.open();
      await new Promise<void>((resolve) => {
        this.#onOpen = () => batch.every(({ isOpen }) => isOpen) && resolve();
      });
    }
    this.#onOpen = () => {};
  }

  noteOpened(): void {
    this.#lastOpenedAt = now();
    this.#onOpen();
  }

  noteChange(watcher: Watcher, transactionHash: string): void {
    const { number, changedAtMs } = parseMark(transactionHash);
    this.#received += 1;
    if (number <= watcher.known) this.#repeated += 1;
    else if (watcher.hasChanged) {
      this.#skipped += number - watcher.known - 1;
      this.#latencies.push(now() - changedAtMs);
    }
    watcher.known = Math.max(number, watcher.known);
    watcher.hasChanged = true;
  }

  noteEnd(cause: string): void {
    this.#reconnects += 1;
    this.#failures[cause] = (this.#failures[cause] ?? 0) + 1;
  }

  report(): WatchersReport {
    const latencies = this.#latencies.sort((a, b) => a - b);
    const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
    const report = {
      open: this.#watchers.filter(({ isOpen }) => isOpen).length,
      received: this.#received,
      repeated: this.#repeated,
      skipped: this.#skipped,
      latencyMs: { p50: at(0.5), p99: at(0.99), max: at(1) },
      reconnects: this.#reconnects,
      failures: this.#failures,
      lastOpenedAt: this.#lastOpenedAt,
      known: this.#watchers.map(({ known }) => known),
    };
    this.#latencies = [];
    this.#received = this.#repeated = this.#skipped = this.#reconnects = 0;
    this.#failures = {};
    return report;
  }
}

/** Opens a stream for a watcher and tells it what happens; `onEnd` may be called more than once. */
type OpenStream = (watcher: Watcher) => void;

class Watcher {
  isOpen = false;
  token = "";
  /** Number of the last change that it was told of; -1: none. */
  known = -1;
  /** Whether the present stream has told a state: what follows is a change. */
  hasChanged = false;
  retryMs = DEFAULT_RETRY_MS;
  #failures = 0;
  /** Tells the present stream from earlier ones. */
  #attempt = 0;

  constructor(
    readonly index: number,
    readonly openStream: OpenStream,
    readonly all: Watchers,
  ) {}

  open(): void {
    this.#attempt += 1;
    this.hasChanged = false;
    this.openStream(this);
  }

  /** Returns a function that ends the present attempt, once. */
  createOnEnd(): (ending: Ending) => void {
    const attempt = this.#attempt;
    return ({ cause, retryAfterSeconds = 0 }) => {
      if (attempt !== this.#attempt) return;
      this.#attempt += 1;
      this.isOpen = false;
      this.all.noteEnd(cause);
      // computeRetryDelayMs is what the client of this package does; EventSource waits for what the server has told.
      const isEventSource = this.retryMs > 0;
      const pauseMs = isEventSource ? this.retryMs : computeRetryDelayMs(this.#failures);
      this.#failures += 1;
      setTimeout(() => this.open(), retryAfterSeconds * 1_000 + pauseMs);
    };
  }

  noteToken(token: string): void {
    this.token = token;
    if (this.isOpen) return;
    this.isOpen = true;
    this.#failures = 0;
    this.all.noteOpened();
  }
}

function createOpener(input: WatchersInput): OpenStream {
  if (input.protocol === "SSE, HTTP/1.1") return createHttp1Opener(input);
  const openSession = createSessions(input);
  return input.protocol === "gRPC" ? createGrpcOpener(input, openSession) : createHttp2Opener(input, openSession);
}

function createPath({ transferIds }: WatchersInput, { index }: Watcher): string {
  return `/v1/transfers:watch?transferId=${transferIds[index % transferIds.length]}`;
}

/** Reads the events of a stream: the text of each ends with an empty line. */
function createEventReader(watcher: Watcher): (text: string) => void {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const retry = /^retry: ([0-9]+)/m.exec(block)?.[1];
      if (retry !== undefined) watcher.retryMs = Number(retry);
      const token = /^id: (.+)/m.exec(block)?.[1];
      const hash = /"bondTransactionHash":"(0x[0-9a-f]+)"/.exec(block)?.[1];
      if (token !== undefined) watcher.noteToken(token);
      if (hash !== undefined) watcher.all.noteChange(watcher, hash);
    }
  };
}

function createHttp1Opener(input: WatchersInput): OpenStream {
  const { hostname: host, port } = new URL(input.url);
  return (watcher) => {
    const onEnd = watcher.createOnEnd();
    const localAddress = attackerAddress(watcher.index, input.callers);
    const socket = connect({ host, port: Number(port), ...(localAddress && { localAddress }) });
    const resume = watcher.token === "" ? "" : `Last-Event-ID: ${watcher.token}\r\n`;
    socket.write(`GET ${createPath(input, watcher)} HTTP/1.1\r\nHost: ${host}\r\n${resume}\r\n`);
    socket.setEncoding("latin1");
    socket.on("error", (error: NodeJS.ErrnoException) => onEnd({ cause: error.code ?? error.message }));
    socket.on("close", () => onEnd({ cause: "closed" }));
    socket.once("data", (head: string) => {
      if (head.startsWith("HTTP/1.1 200")) {
        const read = createEventReader(watcher);
        read(head.slice(head.indexOf("\r\n\r\n") + 4));
        socket.on("data", read);
        return;
      }
      const retryAfterSeconds = Number(/^retry-after: ([0-9]+)/im.exec(head)?.[1] ?? 0);
      onEnd({ cause: head.slice(9, 12), retryAfterSeconds });
      socket.destroy();
    });
  };
}

type GetSession = (index: number) => ClientHttp2Session;

/** Returns a function that returns the connection of a watcher, and opens it again after it has ended. */
function createSessions({ url, callers }: WatchersInput): GetSession {
  const { hostname: host, port } = new URL(url);
  const sessions: ClientHttp2Session[] = [];
  return (index) => {
    const number = Math.floor(index / STREAMS_PER_SESSION);
    const present = sessions[number];
    if (present !== undefined && !present.closed && !present.destroyed) return present;
    const localAddress = attackerAddress(number, callers);
    const createConnection = () => connect({ host, port: Number(port), ...(localAddress && { localAddress }) });
    const session = connectHttp2(url, { createConnection });
    session.on("error", () => {});
    session.setMaxListeners(0);
    sessions[number] = session;
    return session;
  };
}

function createHttp2Opener(input: WatchersInput, getSession: GetSession): OpenStream {
  return (watcher) => {
    const onEnd = watcher.createOnEnd();
    const resume = watcher.token === "" ? {} : { "last-event-id": watcher.token };
    const stream = getSession(watcher.index).request({ ":path": createPath(input, watcher), ...resume });
    stream.setEncoding("latin1");
    stream.on("error", (error: NodeJS.ErrnoException) => onEnd({ cause: error.code ?? error.message }));
    stream.on("close", () => onEnd({ cause: "closed" }));
    stream.once("response", ({ ":status": status, "retry-after": retryAfter }) => {
      if (status === 200) return;
      onEnd({ cause: `${status}`, retryAfterSeconds: Number(retryAfter ?? 0) });
      stream.resume();
    });
    stream.on("data", createEventReader(watcher));
  };
}

function createGrpcOpener({ transferIds }: WatchersInput, getSession: GetSession): OpenStream {
  return (watcher) => {
    watcher.retryMs = 0;
    const onEnd = watcher.createOnEnd();
    const headers = { ":method": "POST", ":path": GRPC_PATH, "content-type": "application/grpc", te: "trailers" };
    const stream = getSession(watcher.index).request(headers);
    stream.on("error", (error: NodeJS.ErrnoException) => onEnd({ cause: error.code ?? error.message }));
    stream.on("close", () => onEnd({ cause: "closed" }));
    const onStatus = (status: unknown, retryAfter: unknown): void => {
      if (status !== undefined) onEnd({ cause: `gRPC ${status}`, retryAfterSeconds: Number(retryAfter ?? 0) });
    };
    stream.once("response", (head) => onStatus(head["grpc-status"], head["retry-after"]));
    stream.once("trailers", (trailers) => onStatus(trailers["grpc-status"], trailers["retry-after"]));
    stream.on("data", createMessageReader(watcher));
    const transferId = [transferIds[watcher.index % transferIds.length] ?? ""];
    const request = create(WatchTransfersRequestSchema, { transferId, resumeToken: watcher.token });
    const message = toBinary(WatchTransfersRequestSchema, request);
    const prefix = Buffer.alloc(GRPC_PREFIX_BYTES);
    prefix.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([prefix, message]));
  };
}

/** Reads the messages of a stream of gRPC. */
function createMessageReader(watcher: Watcher): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= GRPC_PREFIX_BYTES) {
      const end = GRPC_PREFIX_BYTES + rest.readUInt32BE(1);
      if (rest.length < end) return;
      const { resumeToken, event } = fromBinary(WatchTransfersResponseSchema, rest.subarray(GRPC_PREFIX_BYTES, end));
      rest = rest.subarray(end);
      watcher.noteToken(resumeToken);
      if (event.case === "transfer") watcher.all.noteChange(watcher, event.value.bondTransactionHash);
    }
  };
}

/** Returns milliseconds since 1970, with fractions. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
