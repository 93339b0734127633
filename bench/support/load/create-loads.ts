import { runGrpcLoad } from "./grpc-load-generator.js";
import { runH2load } from "./h2load.js";
import { runHttpLoad } from "./http-load-generator.js";
import { buildNextRequest, type HttpRequests } from "./http-requests.js";
import type { Load } from "./load.js";
import { isInstalled } from "./run-generator.js";
import { runWrk } from "./wrk.js";

const CONNECTIONS = 32;
const GRPC_CONNECTIONS = 4;
const GRPC_CALLS_PER_CONNECTION = 16;

/** Returns HTTP/1.1 load by every generator that is installed. Each sends the same bytes. */
export function createHttpLoads(requests: HttpRequests): readonly Load[] {
  const wrk: Load = {
    generator: "wrk",
    run: (url, seconds) => runWrk({ url, connections: CONNECTIONS, seconds, requests }),
  };
  const own: Load = {
    generator: "bench",
    run: (url, seconds) =>
      runHttpLoad({ url, connections: CONNECTIONS, seconds, request: () => buildNextRequest(requests) }),
  };
  return hasProgram("wrk") ? [wrk, own] : [own];
}

export interface GrpcLoadsOptions {
  /** Path of the method. */
  readonly path: string;
  /** Returns the next encoded request. h2load sends one to all. */
  message(): Uint8Array;
  /** Length of every encoded response. */
  readonly responseBytes: number;
}

/** Returns load of unary gRPC calls by every generator that is installed. */
export function createGrpcLoads(options: GrpcLoadsOptions): readonly Load[] {
  const shared = { ...options, connections: GRPC_CONNECTIONS, concurrency: GRPC_CALLS_PER_CONNECTION };
  const h2load: Load = { generator: "h2load", run: (url, seconds) => runH2load({ ...shared, url, seconds }) };
  const own: Load = { generator: "bench", run: (url, seconds) => runGrpcLoad({ ...shared, url, seconds }) };
  return hasProgram("h2load") ? [h2load, own] : [own];
}

function hasProgram(program: string): boolean {
  if (isInstalled(program)) return true;
  console.log(`(${program} is not installed: only the bench's own generator is used)`);
  return false;
}
