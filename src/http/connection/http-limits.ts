import { readFileSync } from "node:fs";

/** Limits of a server. Sizes are in bytes, times in milliseconds. */
export type HttpLimits = Readonly<typeof DEFAULT_HTTP_LIMITS>;

export const DEFAULT_HTTP_LIMITS = {
  /**
   * Concurrent connections, capped to what the limit of open files allows. 10,000 streams over HTTP/1.1 leave a third
   * for others. An idle connection takes about 12 KB, over HTTP/2 23 KB.
   */
  connections: 15_000,
  /**
   * Connections that the system keeps until this process accepts them; Linux caps it to `net.core.somaxconn`, 4,096 by
   * default. Beyond it, packets are dropped and clients wait 1, 3, 7 seconds: with the 511 of Node.js, thousands who
   * came back at once waited so long.
   */
  acceptQueue: 4096,
  /** All headers of one request, including the request line. */
  headerBytes: 16 * 1024,
  /** Number of headers of one request, including the pseudo-headers of HTTP/2. */
  headers: 128,
  /** Path and query of one request. */
  urlBytes: 8 * 1024,
  /** One request message, before and after decompression. */
  requestBytes: 64 * 1024,
  /** One response message. */
  responseBytes: 4 * 1024 * 1024,
  /** Concurrent requests of one HTTP/2 connection. */
  concurrentStreams: 250,
  /**
   * Streaming calls of operations that are open at the same time, of all callers together. Those over HTTP/1.1 take at
   * most `HTTP1_STREAM_CONNECTION_SHARE` of the connections. At 16 KB each (14 KB over HTTP/2), 10,000 take 160 MB and
   * all together 320 MB. Operations limit them further.
   */
  operationStreams: 20_000,
  /** The same for health watches. One caller gets at most half. At 15 KB each, all together stay below 30 MB. */
  streamingCalls: 2_000,
  /** The same for the general path, at 60 KB each: reflection, and streams in unusual forms. */
  generalStreamingCalls: 250,
  /**
   * Concurrent requests of all HTTP/2 connections; at most half of them for one caller. An open stream takes about 12
   * KiB, whether it waits for its response or for its caller.
   */
  totalStreams: 2000,
  /** Unary calls that do not respond synchronously; at most half of them for one caller. Each takes a few kilobytes. */
  pendingCalls: 10_000,
  /** Unanswered requests of one HTTP/1.1 connection. Further ones stay unread. */
  pipelinedRequests: 8,
  /** Unanswered requests of all HTTP/1.1 connections beyond the first of each. */
  totalPipelinedRequests: 2000,
  /** Bytes of all connections that their peers have not read yet. */
  unsentBytes: 32 * 1024 * 1024,
  /** Memory of all request bodies that are not complete. */
  receivedBytes: 16 * 1024 * 1024,
  /** Flow-control window of an HTTP/2 stream: what its caller may send before anybody reads it. */
  streamWindowBytes: 16 * 1024,
  /** From the first byte of a connection or request to the end of its headers. */
  headersMs: 10_000,
  /** From the start of a request to the end of its body. */
  requestMs: 30_000,
  /**
   * How long an idle HTTP/1.1 connection stays open. Above the 60 seconds of common load balancers: if the server
   * closed first, their next request could be lost.
   */
  keepAliveMs: 65_000,
  /** How long an HTTP/2 connection stays open without a request, and a streaming request without a message. */
  idleMs: 300_000,
  /** Interval of PINGs on an HTTP/2 connection. Each must be answered before the next. */
  pingIntervalMs: 30_000,
  /** How long a caller may take to read a response, or longer if it reads `minBytesPerSecond`. */
  responseMs: 60_000,
  /** Lowest rate at which a large response must be read. */
  minBytesPerSecond: 16 * 1024,
};

/** Share of the connections that streaming calls over HTTP/1.1 may take: the others are for requests. */
export const HTTP1_STREAM_CONNECTION_SHARE = 0.8;

/** Share of the file descriptors for callers: upstreams, the index and the log need some too. */
const FILE_DESCRIPTOR_SHARE = 0.8;

/** Caps a number of connections to what the limit of open files of the process allows. */
export function capToFileDescriptorLimit(requested: number): number {
  const openFiles = readFileLimit();
  return openFiles > 0 ? Math.min(requested, Math.floor(openFiles * FILE_DESCRIPTOR_SHARE)) : requested;
}

/** Returns the soft limit of open files of the process; not a positive number: there is none, or it is unknown. */
export function readFileLimit(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
  } catch {
    // Not Linux. The report takes ten milliseconds; without this, it would also resolve the host names of all peers.
    const report = Object.assign(process.report, { excludeNetwork: true });
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
    return Number(userLimits?.open_files?.soft);
  }
}
