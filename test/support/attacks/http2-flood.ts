import { connect, type Socket } from "node:net";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../../bench/support/http2-frames.js";
import { attackerAddress } from "./caller-addresses.js";

/** A request that every stream of a flood sends. */
export interface FloodRequest {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** undefined: the request has no body. At most 16 KiB, the largest frame that the service must accept. */
  readonly body?: Buffer;
  /** Leaves the body without an end. */
  readonly isUnfinished?: boolean;
}

export interface Http2FloodOptions {
  readonly port: number;
  readonly connections: number;
  /** Streams that each connection keeps open. */
  readonly streams: number;
  readonly request: FloodRequest;
  /** Number of callers among whom the connections are divided. */
  readonly callers: number;
  /** Flow-control window of each stream in bytes: 0 means that the peer can never send a body. Default: the largest. */
  readonly window?: number;
  /** Opens connections and streams again as often as the server closes them. */
  readonly isPersistent?: boolean;
}

/** Connections that an attacker holds. */
export interface Flood {
  /** Returns the number of open connections. */
  openConnections(): number;
  /** Returns the number of requests that were sent and that the server has neither answered completely nor refused. */
  openRequests(): number;
  /** Returns the number of requests sent so far. */
  sentRequests(): number;
  close(): void;
}

/** How often a persistent attacker opens again what was closed, in milliseconds. */
export const REOPEN_INTERVAL_MS = 200;
const EMPTY = Buffer.alloc(0);

export function getRequest(path: string): FloodRequest {
  return {
    headers: [
      [":method", "GET"],
      [":scheme", "http"],
      [":path", path],
      [":authority", "attacked"],
    ],
  };
}

/** Builds a gRPC call. @param messages encoded with their prefixes; default: one empty message */
export function grpcRequest(path: string, messages: Buffer = Buffer.alloc(5)): FloodRequest {
  const headers = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "attacked"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ] as const;
  return { headers, body: messages };
}

/**
 * Holds streams over cleartext HTTP/2. Reads and acknowledges every PING and SETTINGS, so that the server has no reason
 * to close the connection but the streams.
 */
export function startHttp2Flood(options: Http2FloodOptions): Flood {
  const { connections, isPersistent = false } = options;
  const held = new Map<number, Http2Connection>();
  let sent = 0;
  const fill = (): void => {
    for (let index = 0; index < connections; index += 1) {
      const open = held.get(index);
      if (open === undefined) {
        const opened = openConnection(index, options, (count) => {
          sent += count;
        });
        held.set(index, opened);
        opened.socket.once("close", () => held.delete(index));
      } else open.fill();
    }
  };
  fill();
  const timer = isPersistent ? setInterval(fill, REOPEN_INTERVAL_MS) : undefined;
  return {
    openConnections: () => held.size,
    openRequests: () => [...held.values()].reduce((sum, { open }) => sum + open.size, 0),
    sentRequests: () => sent,
    close() {
      clearInterval(timer);
      for (const { socket } of held.values()) socket.destroy();
    },
  };
}

interface Http2Connection {
  readonly socket: Socket;
  /** Streams that are not closed. */
  readonly open: ReadonlySet<number>;
  /** Opens streams up to the number wanted. */
  fill(): void;
}

function openConnection(
  index: number,
  { port, streams, request, callers, window }: Http2FloodOptions,
  onSent: (count: number) => void,
): Http2Connection {
  const localAddress = attackerAddress(index, callers);
  const socket = connect({ port, host: "127.0.0.1", ...(localAddress && { localAddress }) });
  const open = new Set<number>();
  const headers = encodeHeaders(request.headers);
  const endsStream = request.body === undefined ? FRAME_FLAGS.endStream : 0;
  let nextStream = 1;
  let isClosing = false;

  const fill = (): void => {
    const frames: Buffer[] = [];
    for (; open.size < streams && !isClosing; nextStream += 2) {
      const block = nextStream === 1 ? headers.first : headers.later;
      frames.push(encodeFrame(FRAME_TYPES.headers, FRAME_FLAGS.endHeaders | endsStream, nextStream, block));
      if (request.body !== undefined)
        frames.push(
          encodeFrame(FRAME_TYPES.data, request.isUnfinished ? 0 : FRAME_FLAGS.endStream, nextStream, request.body),
        );
      open.add(nextStream);
    }
    if (frames.length === 0) return;
    socket.write(Buffer.concat(frames));
    onSent(frames.length / (request.body === undefined ? 1 : 2));
  };
  const read = createFrameReader((type, flagBits, stream, payload) => {
    const isAck = (flagBits & FRAME_FLAGS.ack) !== 0;
    if (type === FRAME_TYPES.settings && !isAck)
      socket.write(encodeFrame(FRAME_TYPES.settings, FRAME_FLAGS.ack, 0, EMPTY));
    else if (type === FRAME_TYPES.ping && !isAck)
      socket.write(encodeFrame(FRAME_TYPES.ping, FRAME_FLAGS.ack, 0, payload));
    else if (type === FRAME_TYPES.goAway) isClosing = true;
    else if (type === FRAME_TYPES.reset) open.delete(stream);
    else if ((type === FRAME_TYPES.headers || type === FRAME_TYPES.data) && (flagBits & FRAME_FLAGS.endStream) !== 0)
      open.delete(stream);
  });
  socket.on("data", read);
  socket.on("error", () => {});
  socket.once("close", () => open.clear());
  socket.write(encodeClientPreface(window));
  fill();
  return { socket, open, fill };
}
