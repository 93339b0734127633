import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { openRawSocket } from "./raw-client.js";
import { WATCH_GET_PATH } from "./stream-contract.js";

const STREAMS_PER_CONNECTION = 200;

/** Opens streaming calls over HTTP/2, without what a client of Node.js takes for each. They are closed after the test. */
export async function openStreams(
  port: number,
  path: string,
  count: number,
  { method = "POST", onData = () => {} }: { method?: string; onData?: (chunk: Buffer) => void } = {},
): Promise<void> {
  for (let opened = 0; opened < count; opened += STREAMS_PER_CONNECTION) {
    const socket = await openRawSocket(port);
    socket.on("data", onData);
    socket.write(encodeClientPreface());
    const pseudo = { ":method": method, ":scheme": "http", ":path": path, ":authority": "a" };
    const fields = { ...pseudo, "content-type": "application/grpc", te: "trailers" };
    const { first, later } = encodeHeaders(Object.entries(fields));
    for (let index = 0; index < Math.min(STREAMS_PER_CONNECTION, count - opened); index += 1) {
      const id = 2 * index + 1;
      const headFlags = FRAME_FLAGS.endHeaders | (method === "GET" ? FRAME_FLAGS.endStream : 0);
      socket.write(encodeFrame(FRAME_TYPES.headers, headFlags, id, index === 0 ? first : later));
      if (method === "GET") continue;
      // An empty message. Reflection stays open only while its request does.
      const flags = path.endsWith("Watch") ? FRAME_FLAGS.endStream : 0;
      socket.write(encodeFrame(FRAME_TYPES.data, flags, id, Buffer.alloc(5)));
    }
  }
}

/** Opens streams of the test's watch over HTTP/1.1, each on a connection of its own. */
export async function openHttp1Streams(
  port: number,
  count: number,
  onData: (chunk: Buffer) => void = () => {},
): Promise<void> {
  for (let opened = 0; opened < count; opened += 1) {
    const socket = await openRawSocket(port);
    socket.on("data", onData);
    socket.write(`GET ${WATCH_GET_PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
  }
}
