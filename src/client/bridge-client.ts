import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { type UniversalClientRequest, universalClientResponseFromFetch } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";

const MAX_MESSAGE_BYTES = 0xffff_ffff;

/** The operations of the contract as functions. */
export type BridgeClient = Client<typeof BridgeService>;

export interface BridgeClientOptions {
  /** Timeout of calls that set none themselves, in milliseconds. Default: none. */
  readonly timeoutMs?: number;
  /** Sends the requests. Default: `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Creates a client over Connect and `fetch`, for browsers and Node.js. In Node.js it keeps connections alive without keeping
 * the process running. Calls fail with a ConnectError, which {@link getErrorDetails} reads.
 * @param baseUrl URL of the service, such as `http://127.0.0.1:8000`
 */
export function createBridgeClient(baseUrl: string, { timeoutMs, fetch }: BridgeClientOptions = {}): BridgeClient {
  const transport = createTransport({
    baseUrl,
    httpClient: (request) => send(request, fetch ?? globalThis.fetch),
    useBinaryFormat: true,
    interceptors: [],
    // fetch asks for compressed responses and decompresses them by itself.
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: MAX_MESSAGE_BYTES,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  });
  return createClient(BridgeService, transport);
}

async function send({ url, method, header, body, signal }: UniversalClientRequest, fetch: typeof globalThis.fetch) {
  // No operation takes a stream. Browsers send none over HTTP/1.1.
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of body ?? []) chunks.push(new Uint8Array(chunk));
  const init = { method, headers: header, body: new Blob(chunks), ...(signal && { signal }) };
  // Connect itself tells calls that the signal ended from those that failed.
  const response = await fetch(url, init).catch((error: unknown) => {
    throw new ConnectError("the service could not be reached", Code.Unavailable, undefined, undefined, error);
  });
  const answer = universalClientResponseFromFetch(response);
  return { ...answer, header: describeDecodedBody(answer.header), body: readBody(answer.body) };
}

/** Returns headers that fit a body which fetch has decompressed: its encoding and its length are those of the compressed one. */
function describeDecodedBody(header: Headers): Headers {
  if (!header.has("content-encoding")) return header;
  const decoded = new Headers(header);
  decoded.delete("content-encoding");
  decoded.delete("content-length");
  return decoded;
}

async function* readBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw new ConnectError(
      "the connection was lost during the response",
      Code.Unavailable,
      undefined,
      undefined,
      error,
    );
  }
}
