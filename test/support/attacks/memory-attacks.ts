import { type Flood, getRequest, grpcRequest, startHttp2Flood } from "./http2-flood.js";
import { startPipelinedFlood } from "./pipelined-flood.js";

/** Attacks that make the service keep something in memory. */
export type MemoryAttack = "http2-unread" | "watches" | "pipelined-routes" | "pipelined-metrics" | "pipelined-many";

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
  }
}
