import { type Flood, getRequest, grpcRequest, startHttp2Flood } from "./http2-flood.js";
import { startPipelinedFlood } from "./pipelined-flood.js";

/** Attacks that make the service keep something in memory. */
export type MemoryAttack =
  | "http2-unread"
  | "watches"
  | "pipelined-routes"
  | "pipelined-metrics"
  | "pipelined-many"
  | "grpc-unread"
  | "reflection-unread"
  | "unfinished-bodies"
  | "idle-http1"
  | "idle-http2";

export interface MemoryAttackTarget {
  readonly port: number;
  readonly metricsPort: number;
}

export interface MemoryAttackOptions {
  /** Factor of the number of connections. */
  readonly scale?: number;
  /** Number of callers who take part. */
  readonly callers?: number;
  /** Opens again what the server closes. */
  readonly isPersistent?: boolean;
}

export const ROUTES_PATH = "/v1/available-routes";
const SERVICE_PATH = "/hop.bridge.v1.BridgeService";
/** Largest payload of a frame (RFC 9113 4.2). */
const FRAME_BYTES = 16_384;
/** ServerReflectionRequest of `file_containing_symbol`, with the prefix of a gRPC message. */
const REFLECTION_MESSAGE = encodeMessage(Buffer.concat([Buffer.from([0x22, 27]), Buffer.from(SERVICE_PATH.slice(1))]));

/** Starts an attack, which lasts until it is closed. */
export function startMemoryAttack(
  name: MemoryAttack,
  { port, metricsPort }: MemoryAttackTarget,
  { scale = 1, callers = 1, isPersistent = false }: MemoryAttackOptions = {},
): Flood {
  const connections = (count: number): number => Math.max(1, Math.round(count * scale));
  const shared = { port, callers, isPersistent };
  switch (name) {
    case "http2-unread":
      return startHttp2Flood({
        ...shared,
        connections: connections(100),
        streams: 250,
        window: 0,
        request: getRequest(ROUTES_PATH),
      });
    case "watches":
      return startHttp2Flood({
        ...shared,
        connections: connections(40),
        streams: 250,
        request: grpcRequest("/grpc.health.v1.Health/Watch"),
      });
    case "pipelined-routes":
      return startPipelinedFlood({
        ...shared,
        connections: connections(50),
        requests: 249,
        path: ROUTES_PATH,
        isReading: false,
      });
    case "pipelined-metrics":
      return startPipelinedFlood({
        ...shared,
        port: metricsPort,
        connections: connections(50),
        requests: 249,
        path: "/metrics",
        isReading: false,
      });
    case "pipelined-many":
      return startPipelinedFlood({
        ...shared,
        connections: connections(400),
        requests: 249,
        path: ROUTES_PATH,
        isReading: true,
      });
    case "grpc-unread":
      return startHttp2Flood({
        ...shared,
        connections: connections(100),
        streams: 250,
        window: 0,
        request: grpcRequest(`${SERVICE_PATH}/ListAvailableRoutes`),
      });
    case "reflection-unread": {
      const messages = Buffer.concat(
        Array.from({ length: Math.floor(FRAME_BYTES / REFLECTION_MESSAGE.length) }, () => REFLECTION_MESSAGE),
      );
      const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
      return startHttp2Flood({
        ...shared,
        connections: connections(10),
        streams: 100,
        window: 0,
        request: { ...grpcRequest(path, messages), isUnfinished: true },
      });
    }
    case "unfinished-bodies":
      return startHttp2Flood({
        ...shared,
        connections: connections(100),
        streams: 250,
        request: { ...grpcRequest(`${SERVICE_PATH}/GetQuote`, startLongMessage()), isUnfinished: true },
      });
    case "idle-http1":
      // The connection has carried one request and waits for the next.
      return startPipelinedFlood({
        ...shared,
        connections: connections(4_000),
        requests: 1,
        path: "/livez",
        isReading: true,
      });
    case "idle-http2":
      return startHttp2Flood({ ...shared, connections: connections(4_000), streams: 0, request: getRequest("/livez") });
  }
}

function encodeMessage(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Starts a message of 60 KiB that does not fit the frame. */
function startLongMessage(): Buffer {
  return encodeMessage(Buffer.alloc(60 * 1_024, 0x0a)).subarray(0, FRAME_BYTES);
}
