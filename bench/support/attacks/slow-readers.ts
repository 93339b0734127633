import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { getRequest } from "../../../test/support/attacks/http2-flood.js";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../http2-frames.js";

// Callers that take an answer so slowly that it never ends, without ever being silent.

/** Waits until the server closes a connection or resets its stream; resolves with the seconds that took, Infinity: not yet. */
export type SlowReader = (port: number, maxSeconds: number) => Promise<number>;

const INTERVAL_MS = 1_000;
const WINDOW_UPDATE_FRAME = 8;
const LARGE_PATH = "/v1/available-routes";

/** Reads pipelined answers, which are larger than what the buffers of the system hold, at one byte per second. */
export const readHttp1Slowly: SlowReader = (port, maxSeconds) =>
  waitForEnd(maxSeconds, (onEnd) => {
    const buffer = Buffer.alloc(1);
    const socket = connect({
      port,
      host: "127.0.0.1",
      // Reads one byte, then pauses.
      onread: { buffer, callback: () => false },
    });
    socket.on("error", () => {}).once("close", onEnd);
    socket.write(`GET ${LARGE_PATH} HTTP/1.1\r\nHost: attacked\r\n\r\n`.repeat(240));
    const timer = setInterval(() => {
      socket.resume();
      // The end would reach this reader only after all bytes before it.
      if (socket.localPort !== undefined && !isEstablished(port, socket.localPort)) onEnd();
    }, INTERVAL_MS);
    return () => {
      clearInterval(timer);
      socket.destroy();
    };
  });

/** Opens the window of a stream by one byte per second. */
export const readHttp2Slowly: SlowReader = (port, maxSeconds) =>
  holdStream(port, maxSeconds, () => encodeFrame(WINDOW_UPDATE_FRAME, 0, 1, Buffer.from([0, 0, 0, 1])));

/** Never opens the window of a stream, and sends PING every second. */
export const pingWithoutReading: SlowReader = (port, maxSeconds) =>
  holdStream(port, maxSeconds, () => encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8, 1)));

function holdStream(port: number, maxSeconds: number, everySecond: () => Buffer): Promise<number> {
  return waitForEnd(maxSeconds, (onEnd) => {
    const socket = connect(port, "127.0.0.1");
    const headers = encodeHeaders(getRequest(LARGE_PATH).headers);
    const flags = FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream;
    const read = createFrameReader((type, flagBits, stream, payload) => {
      const isAck = (flagBits & FRAME_FLAGS.ack) !== 0;
      if (type === FRAME_TYPES.reset && stream === 1) onEnd();
      else if (type === FRAME_TYPES.settings && !isAck)
        socket.write(encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, Buffer.alloc(0)));
      else if (type === FRAME_TYPES.ping && !isAck)
        socket.write(encodeFrame(FRAME_TYPES.ping, FRAME_FLAGS.ack, 0, payload));
    });
    socket.on("data", read);
    socket.on("error", () => {}).once("close", onEnd);
    socket.write(Buffer.concat([encodeClientPreface(0), encodeFrame(FRAME_TYPES.headers, flags, 1, headers.first)]));
    const timer = setInterval(() => socket.write(everySecond()), INTERVAL_MS);
    return () => {
      clearInterval(timer);
      socket.destroy();
    };
  });
}

/** Returns whether a server holds a connection open, where the kernel tells (Linux). */
function isEstablished(serverPort: number, clientPort: number): boolean {
  if (process.platform !== "linux") return true;
  const [server, client] = [serverPort, clientPort].map((port) => port.toString(16).toUpperCase().padStart(4, "0"));
  const line = new RegExp(`^ *\\d+: [0-9A-F]+:${server} [0-9A-F]+:${client} 01 `, "m");
  return line.test(readFileSync("/proc/net/tcp", "utf8"));
}

/** @param begin starts the reader and returns a function that stops it */
function waitForEnd(maxSeconds: number, begin: (onEnd: () => void) => () => void): Promise<number> {
  const began = performance.now();
  return new Promise((resolve) => {
    const finish = (seconds: number): void => {
      clearTimeout(timer);
      stop();
      resolve(seconds);
    };
    const timer = setTimeout(() => finish(Number.POSITIVE_INFINITY), maxSeconds * 1_000);
    const stop = begin(() => finish((performance.now() - began) / 1_000));
  });
}
