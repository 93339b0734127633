import { get } from "node:http";
import { connect } from "node:net";
import { attackerAddress, POLITE_ADDRESS } from "../../../test/support/attacks/caller-addresses.js";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../http2-frames.js";

// Watches of transactions that nobody knows, opened over HTTP/2 in large numbers and reset.

export interface WatchStormOptions {
  readonly port: number;
  readonly watches: number;
  /** Gives each watch a caller of its own, for a service with `TRUST_PROXY`. Default: all are of one caller. */
  readonly hasCallerEach?: boolean;
  /** How long the watches stay open, in milliseconds. Default: each is reset at once. */
  readonly holdMs?: number;
}

/** Streams of one connection: of more resets in a row, Node.js closes the connection. */
const STREAMS_PER_CONNECTION = 250;
const CANCEL = Buffer.from([0, 0, 0, 8]);
const EMPTY = Buffer.alloc(0);
/** Until the service has read what was sent. */
const SETTLE_MS = 300;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Time from the resets to the end of the connection. */
const LINGER_MS = 500;

/** Hashes of one watch over GET. */
const HASHES_PER_WATCH = 50;

/** Returns the hash of a transaction that no chain has. */
const watchedHash = (index: number): string => `0x${"5704".repeat(14)}${index.toString(16).padStart(8, "0")}`;

/** Returns the address of a caller, as a proxy would name it. */
const proxiedAddress = (index: number): string => `10.${index >>> 16}.${(index >>> 8) & 255}.${index & 255}`;

const watchPath = (...hashes: readonly string[]): string =>
  `/v1/transfers:watch?${hashes.map((hash) => `transferHash=${hash}`).join("&")}`;

/** Opens watches and resets each at once, 250 on each connection. Resolves when the last connection is closed. */
export async function stormWatches(options: WatchStormOptions): Promise<void> {
  const { watches } = options;
  const connections = Math.ceil(watches / STREAMS_PER_CONNECTION);
  const storms = Array.from({ length: connections }, (_, index) => {
    const first = index * STREAMS_PER_CONNECTION;
    const count = Math.min(STREAMS_PER_CONNECTION, watches - first);
    return resetWatches(first, count, options);
  });
  await Promise.all(storms);
}

function resetWatches(first: number, count: number, options: WatchStormOptions): Promise<void> {
  const { port, hasCallerEach = false, holdMs = 0 } = options;
  const socket = connect({ port, host: "127.0.0.1" });
  const streams = Array.from({ length: count }, (_, index) => 1 + 2 * index);
  const opened = streams.map((stream, index) => {
    const headers = [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", watchPath(watchedHash(first + index))],
      [":authority", "attacked"],
      ...(hasCallerEach ? [["x-forwarded-for", proxiedAddress(first + index)] as const] : []),
    ] as const;
    const flagBits = FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream;
    return encodeFrame(FRAME_TYPES.headers, flagBits, stream, encodeHeaders(headers).first);
  });
  const reset = streams.map((stream) => encodeFrame(FRAME_TYPES.reset, 0, stream, CANCEL));
  socket.on(
    "data",
    createFrameReader((type, flagBits) => {
      if (type === FRAME_TYPES.settings && (flagBits & FRAME_FLAGS.ack) === 0)
        socket.write(encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, EMPTY));
    }),
  );
  socket.on("error", () => {});
  const resetAll = (): void => {
    socket.write(Buffer.concat(reset));
    setTimeout(() => socket.destroy(), LINGER_MS);
  };
  socket.write(Buffer.concat([encodeClientPreface(), ...opened]));
  if (holdMs > 0) setTimeout(resetAll, holdMs);
  else resetAll();
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
}

/**
 * Watches many hashes and then one more, as one caller, and that one as another caller. Resolves with the time in milliseconds
 * until the other caller has its state.
 */
export async function watchBehind(port: number, hashes: number): Promise<number> {
  const shared = watchedHash(hashes);
  const attacks: WatchResponse[] = [];
  for (let first = 0; first < hashes; first += HASHES_PER_WATCH) {
    const count = Math.min(HASHES_PER_WATCH, hashes - first);
    const watched = Array.from({ length: count }, (_, index) => watchedHash(first + index));
    attacks.push(openWatch(port, watchPath(...watched), attackerAddress(0, 1)));
  }
  await sleep(SETTLE_MS);
  const last = openWatch(port, watchPath(shared), attackerAddress(0, 1));
  await sleep(SETTLE_MS);
  const began = performance.now();
  const other = openWatch(port, watchPath(shared), POLITE_ADDRESS);
  await other.hasState;
  const tookMs = performance.now() - began;
  for (const { close } of [...attacks, last, other]) close();
  return tookMs;
}

interface WatchResponse {
  readonly hasState: Promise<void>;
  close(): void;
}

function openWatch(port: number, path: string, localAddress: string | undefined): WatchResponse {
  let onState = (): void => {};
  const hasState = new Promise<void>((resolve) => {
    onState = resolve;
  });
  const options = { port, path, host: "127.0.0.1", agent: false, ...(localAddress && { localAddress }) } as const;
  const request = get({ ...options, headers: { accept: "text/event-stream" } }, (response) => {
    response.on("error", () => {});
    response.setEncoding("utf8").on("data", (text: string) => {
      if (/^event: (?:unknown|transfer)$/m.test(text)) onState();
    });
  });
  request.on("error", () => {});
  return { hasState, close: () => void request.destroy() };
}
