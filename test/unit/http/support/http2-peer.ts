import type { Socket } from "node:net";
import { createFrameReader, encodeFrame, FRAME_FLAGS, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import { openRawSocket } from "./raw-client.js";

// A peer that speaks HTTP/2 frame by frame.

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Encodes the headers of a GET request in HPACK. */
export const encodeGet = (path: string): Buffer =>
  Buffer.concat([Buffer.from([0x82, 0x86, 1, 1, 0x61, 4, path.length]), Buffer.from(path)]);

/** Resets a stream with CANCEL. */
export const encodeReset = (stream: number): Buffer => encodeFrame(FRAME_TYPES.reset, 0, stream, uint32(8));

type OnFrame = Parameters<typeof createFrameReader>[0];

/** Opens a connection and reads the frames that it receives. */
export async function openPeer(port: number, onFrame: OnFrame = () => {}): Promise<Socket> {
  const socket = await openRawSocket(port);
  return socket.on("data", createFrameReader(onFrame));
}

/** Returns whether a frame acknowledges a PING. */
export const isPingAck = (type: number, flags: number): boolean =>
  type === FRAME_TYPES.ping && flags === FRAME_FLAGS.ack;
