// The subset of HTTP/2 framing (RFC 9113) and HPACK (RFC 7541) that a load generator needs.

export const FRAME_TYPES = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7 } as const;
export const FRAME_FLAGS = { ack: 1, endStream: 1, endHeaders: 4 } as const;

const FRAME_HEADER_BYTES = 9;
const SETTINGS_HEADER_TABLE_SIZE = 1;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;
const WINDOW_UPDATE_FRAME = 8;
/** Initial flow-control window of a connection (RFC 9113 6.9.2). */
const DEFAULT_WINDOW = 65_535;
const MAX_WINDOW = 2 ** 31 - 1;
/** First index of the HPACK dynamic table (RFC 7541 2.3.3). */
const FIRST_DYNAMIC_INDEX = 62;

/**
 * Encodes the connection preface. A header table size of 0 keeps responses free of dynamic references.
 * @param window bytes that the peer may send on each stream
 */
export function encodeClientPreface(window: number = MAX_WINDOW): Buffer {
  const settings = Buffer.alloc(12);
  settings.writeUInt16BE(SETTINGS_HEADER_TABLE_SIZE, 0);
  settings.writeUInt16BE(SETTINGS_INITIAL_WINDOW_SIZE, 6);
  settings.writeUInt32BE(window, 8);
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(MAX_WINDOW - DEFAULT_WINDOW);
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  return Buffer.concat([
    preface,
    encodeFrame(FRAME_TYPES.settings, 0, 0, settings),
    encodeFrame(WINDOW_UPDATE_FRAME, 0, 0, increment),
  ]);
}

export function encodeFrame(type: number, flagBits: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flagBits;
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** Encodes the headers of identical requests: literals for the first on a connection, indexed references for later ones. */
export function encodeHeaders(headers: readonly (readonly [string, string])[]): { first: Buffer; later: Buffer } {
  const literals = headers.flatMap(([name, value]) => [Buffer.from([0x40]), encodeString(name), encodeString(value)]);
  const references = headers.map((_, index) => 0x80 | (FIRST_DYNAMIC_INDEX + headers.length - 1 - index));
  return { first: Buffer.concat(literals), later: Buffer.from(references) };
}

function encodeString(value: string): Buffer {
  if (value.length > 126) throw new RangeError("the header value does not fit a one-byte length");
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, "latin1")]);
}

/** Splits received bytes into frames. A payload is valid until the next chunk. */
export function createFrameReader(
  onFrame: (type: number, flagBits: number, stream: number, payload: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let offset = 0;
    while (bytes.length - offset >= FRAME_HEADER_BYTES) {
      const end = offset + FRAME_HEADER_BYTES + bytes.readUIntBE(offset, 3);
      if (end > bytes.length) break;
      const payload = bytes.subarray(offset + FRAME_HEADER_BYTES, end);
      onFrame(bytes[offset + 3] ?? 0, bytes[offset + 4] ?? 0, bytes.readUInt32BE(offset + 5), payload);
      offset = end;
    }
    rest = bytes.subarray(offset);
  };
}
