import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../http2-frames.js";
import type { LoadResult } from "./load.js";

export interface GrpcLoadOptions {
  readonly url: string;
  /** Path of the method, such as "/hop.bridge.v1.BridgeService/GetQuote". */
  readonly path: string;
  readonly connections: number;
  /** Concurrent calls on each connection. */
  readonly concurrency: number;
  /** When the load ends. Default: after the given number of calls. */
  readonly seconds?: number;
  /** How many calls to make. Default: no limit. */
  readonly calls?: number;
  /** Returns the next encoded request message. */
  message(): Uint8Array;
  /** Length of every encoded response message; any other length fails the run. */
  readonly responseBytes: number;
}

/** Length of the prefix of a length-prefixed gRPC message. */
const GRPC_PREFIX_BYTES = 5;
/** `:status: 200` in the static table of HPACK (RFC 7541, appendix A). */
const HPACK_STATUS_200 = 0x88;
/** HPACK dynamic table size update to 0, at the start of the first header block (RFC 7541 6.3). */
const HPACK_TABLE_SIZE_ZERO = 0x20;

/** Prepends the prefix of a message that is not compressed. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(GRPC_PREFIX_BYTES + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, GRPC_PREFIX_BYTES);
  return framed;
}

/** Makes unary gRPC calls over cleartext HTTP/2. Rejects on any unexpected response. */
export async function runGrpcLoad(options: GrpcLoadOptions): Promise<LoadResult> {
  const { connections, seconds, calls = Number.POSITIVE_INFINITY } = options;
  const state = { sent: 0, completed: 0, limit: calls };
  const opened = await Promise.all(Array.from({ length: connections }, () => open(options, state)));
  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  try {
    const failed = Promise.race(opened.map((connection) => connection.failed));
    const finishAll = async (): Promise<void> => {
      while (state.completed < state.sent) await Promise.race([failed, sleep(1)]);
    };
    for (const connection of opened) connection.begin();
    await (seconds === undefined ? finishAll() : Promise.race([failed, sleep(seconds * 1000)]));
    const took = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(cpuBefore);
    const result = { completed: state.completed, seconds: took, generatorUtilization: (user + system) / 1e6 / took };
    state.limit = 0;
    await finishAll();
    return result;
  } finally {
    state.limit = 0;
    for (const connection of opened) connection.close();
  }
}

async function open(
  { url, path, concurrency, message, responseBytes }: GrpcLoadOptions,
  state: { sent: number; completed: number; limit: number },
) {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setNoDelay(true);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const headers = encodeHeaders([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", host],
    ["content-type", "application/grpc+proto"],
    ["te", "trailers"],
    ["user-agent", "bench"],
  ]);
  let fail = (_error: Error): void => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Another connection may fail first.
  failed.catch(() => {});
  let isClosed = false;
  let nextStream = 1;
  let trailers: Buffer | undefined;
  const received = new Map<number, number>();
  let out: Buffer[] = [];

  function call(): void {
    const stream = nextStream;
    nextStream += 2;
    state.sent += 1;
    received.set(stream, 0);
    out.push(
      encodeFrame(FRAME_TYPES.headers, FRAME_FLAGS.endHeaders, stream, stream === 1 ? headers.first : headers.later),
    );
    out.push(encodeFrame(FRAME_TYPES.data, FRAME_FLAGS.endStream, stream, frameMessage(message())));
  }

  function flush(): void {
    if (out.length === 0) return;
    socket.write(Buffer.concat(out));
    out = [];
  }

  function onHeaders(flagBits: number, stream: number, payload: Buffer): void {
    const block = payload[0] === HPACK_TABLE_SIZE_ZERO ? payload.subarray(1) : payload;
    if ((flagBits & FRAME_FLAGS.endStream) === 0) {
      if (block[0] !== HPACK_STATUS_200) fail(new Error("a response without status 200"));
      return;
    }
    // An ordinary client has verified this server before: every response ends in the same trailers, with grpc-status 0.
    trailers ??= Buffer.from(block);
    const bytes = received.get(stream);
    received.delete(stream);
    if (bytes !== GRPC_PREFIX_BYTES + responseBytes) fail(new Error(`a response of ${bytes} bytes`));
    if (!block.equals(trailers)) fail(new Error(`trailers ${block.toString("hex")}, not ${trailers.toString("hex")}`));
    state.completed += 1;
    if (state.sent < state.limit) call();
  }

  const read = createFrameReader((type, flagBits, stream, payload) => {
    if (type === FRAME_TYPES.data) received.set(stream, (received.get(stream) ?? 0) + payload.length);
    else if (type === FRAME_TYPES.headers) onHeaders(flagBits, stream, payload);
    else if (type === FRAME_TYPES.settings && (flagBits & FRAME_FLAGS.ack) === 0) {
      out.push(encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, Buffer.alloc(0)));
    } else if (type === FRAME_TYPES.ping && (flagBits & FRAME_FLAGS.ack) === 0) {
      out.push(encodeFrame(FRAME_TYPES.ping, FRAME_FLAGS.ack, 0, payload));
    } else if (type === FRAME_TYPES.reset || type === FRAME_TYPES.goAway) {
      fail(new Error(`the server aborted a call: frame ${type}, ${payload.toString("hex")}`));
    }
  });
  socket.on("data", (chunk) => {
    read(chunk);
    flush();
  });
  socket.on("error", (error) => fail(error));
  socket.on("close", () => {
    if (!isClosed) fail(new Error("the server closed a connection"));
  });
  socket.write(encodeClientPreface());
  return {
    failed,
    begin() {
      for (let slot = 0; slot < concurrency && state.sent < state.limit; slot++) call();
      flush();
    },
    close() {
      isClosed = true;
      socket.destroy();
    },
  };
}
