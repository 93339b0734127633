/** What one caller may take of the server. Sizes in bytes, times in milliseconds. */
export interface HttpLimits {
  /** Connections at a time, as far as the process may open that many files. */
  readonly connections: number;
  /** All headers of one request together, the request line included. */
  readonly headerBytes: number;
  /** Number of headers of one request; over HTTP/2 those that name method, scheme, path and host are among them. */
  readonly headers: number;
  /** Path and query of one request. */
  readonly urlBytes: number;
  /** One request message, also once it is decompressed. */
  readonly requestBytes: number;
  /** One response message. */
  readonly responseBytes: number;
  /** Requests that one HTTP/2 connection may have open at a time. */
  readonly concurrentStreams: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headersMs: number;
  /** From the start of a request to the end of its body. */
  readonly requestMs: number;
  /** How long an HTTP/1.1 connection stays open between two requests. */
  readonly keepAliveMs: number;
  /** How long an HTTP/2 connection stays open without a request, and a stream of requests without a message. */
  readonly idleMs: number;
  /** How often an HTTP/2 connection is asked for a sign of life, which it has to give before it is asked again. */
  readonly pingIntervalMs: number;
  /** How long a caller may leave an answer unread. */
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
  headersMs: 10_000,
  requestMs: 30_000,
  // Above the 60 seconds of common load balancers, so that it is they who close, never we under their next request.
  keepAliveMs: 65_000,
  idleMs: 300_000,
  pingIntervalMs: 30_000,
  stallMs: 60_000,
};
