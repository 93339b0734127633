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
  /** Concurrent requests of one HTTP/2 connection. */
  readonly concurrentStreams: number;
  /**
   * Streaming calls of operations that are open at the same time, of all callers together. Those over HTTP/1.1 take at
   * most `CONNECTION_STREAM_SHARE` of the connections.
   */
  readonly operationStreams: number;
  /** The same for health watches. */
  readonly streamingCalls: number;
  /** The same for the general path: reflection, and streams in unusual forms. */
  readonly generalStreamingCalls: number;
  /** Concurrent requests of all HTTP/2 connections; at most half of them for one caller. */
  readonly totalStreams: number;
  /** Unanswered requests of one HTTP/1.1 connection. Further ones stay unread. */
  readonly pipelinedRequests: number;
  /** Unanswered requests of all HTTP/1.1 connections beyond the first of each. */
  readonly totalPipelinedRequests: number;
  /** Bytes of all connections that their peers have not read yet. */
  readonly unsentBytes: number;
  /** Memory of all request bodies that are not complete. */
  readonly receivedBytes: number;
  /** Flow-control window of an HTTP/2 stream: what its caller may send before anybody reads it. */
  readonly streamWindowBytes: number;
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
  /** How long a caller may take to read a response, or longer if it reads `minBytesPerSecond`. */
  readonly responseMs: number;
  /** Lowest rate at which a large response must be read. */
  readonly minBytesPerSecond: number;
}

/** Share of the connections that streams may take over HTTP/1.1: the others are for requests. */
export const CONNECTION_STREAM_SHARE = 0.8;

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  // 10,000 streams over HTTP/1.1 leave a third for others. An idle connection takes about 9 KB.
  connections: 15_000,
  headerBytes: 16 * 1024,
  headers: 128,
  urlBytes: 8 * 1024,
  requestBytes: 64 * 1024,
  responseBytes: 4 * 1024 * 1024,
  concurrentStreams: 250,
  // At 16 KB each (14 KB over HTTP/2), 10,000 take 160 MB and all together 320 MB. Operations limit them further.
  operationStreams: 20_000,
  // One caller gets at most half. At 15 KB and 60 KB each, all together stay below 60 MB.
  streamingCalls: 2_000,
  generalStreamingCalls: 250,
  // An open stream takes about 12 KiB, whether it waits for its response or for its caller.
  totalStreams: 2000,
  pipelinedRequests: 8,
  totalPipelinedRequests: 2000,
  unsentBytes: 32 * 1024 * 1024,
  receivedBytes: 16 * 1024 * 1024,
  streamWindowBytes: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  // Above the 60 seconds of common load balancers: if the server closed first, their next request could be lost.
  keepAliveMs: 65_000,
  idleMs: 300_000,
  pingIntervalMs: 30_000,
  responseMs: 60_000,
  minBytesPerSecond: 16 * 1024,
};
