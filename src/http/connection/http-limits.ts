/** Limits of a server. Sizes are in bytes, times in milliseconds. */
export interface HttpLimits {
  /** Concurrent connections, capped to what the limit of open files allows. */
  readonly connections: number;
  /** All headers of one request, including the request line. */
  readonly headerBytes: number;
  /** Number of headers of one request, including the pseudo-headers of HTTP/2. */
  readonly headers: number;
  /** Path and query of one request. */
  readonly urlBytes: number;
  /** One request message, before and after decompression. */
  readonly requestBytes: number;
  /** One response message. */
  readonly responseBytes: number;
  /** Concurrent requests of one HTTP/2 connection, and pipelined requests of one HTTP/1.1 connection. */
  readonly concurrentStreams: number;
  /** Streaming calls of fast paths (health watches) that are open at the same time, of all callers together. */
  readonly streamingCalls: number;
  /** The same for the general path: reflection, and watches in unusual forms. */
  readonly generalStreamingCalls: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headersMs: number;
  /** From the start of a request to the end of its body. */
  readonly requestMs: number;
  /** How long an idle HTTP/1.1 connection stays open. */
  readonly keepAliveMs: number;
  /** How long an HTTP/2 connection stays open without a request, and a streaming request without a message. */
  readonly idleMs: number;
  /** Interval of PINGs on an HTTP/2 connection. Each must be answered before the next. */
  readonly pingIntervalMs: number;
  /** How long a caller may leave a response unread. */
  readonly stallMs: number;
}

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  connections: 10_000,
  headerBytes: 16 * 1024,
  headers: 128,
  urlBytes: 8 * 1024,
  requestBytes: 64 * 1024,
  responseBytes: 4 * 1024 * 1024,
  concurrentStreams: 250,
  // One caller gets at most half. At 15 KB and 60 KB each, all together stay below 60 MB.
  streamingCalls: 2_000,
  generalStreamingCalls: 250,
  headersMs: 10_000,
  requestMs: 30_000,
  // Above the 60 seconds of common load balancers: if the server closed first, their next request could be lost.
  keepAliveMs: 65_000,
  idleMs: 300_000,
  pingIntervalMs: 30_000,
  stallMs: 60_000,
};
