import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BYTES_PER_PIXEL = 3;

/**
 * Reduces a PNG to 256 colours, which takes about a third of the bytes. The rarest colours are replaced by the nearest of
 * the others, which is invisible in images of text.
 * @param png image as a browser encodes it: 8-bit RGB, not interlaced
 */
export function quantizePng(png: Buffer): Buffer {
  const { width, height, rows } = readPng(png);
  const counts = new Map<number, number>();
  for (const row of rows)
    for (let offset = 0; offset < row.length; offset += BYTES_PER_PIXEL) count(counts, row.readUIntBE(offset, 3));
  const byCount = [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const palette = byCount.slice(0, 256);
  const indexOf = new Map(byCount.map((colour, index) => [colour, index < 256 ? index : nearest(palette, colour)]));

  const lines = Buffer.alloc(height * (width + 1));
  for (const [y, row] of rows.entries()) {
    for (let x = 0; x < width; x++) {
      lines[y * (width + 1) + 1 + x] = indexOf.get(row.readUIntBE(x * BYTES_PER_PIXEL, 3)) ?? 0;
    }
  }
  const header = Buffer.from(parseChunks(png).find(({ type }) => type === "IHDR")?.body ?? []);
  // Colour type 3: palette index.
  header[9] = 3;
  const colours = Buffer.alloc(palette.length * 3);
  for (const [index, colour] of palette.entries()) colours.writeUIntBE(colour, index * 3, 3);
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(lines, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function count(counts: Map<number, number>, colour: number): void {
  counts.set(colour, (counts.get(colour) ?? 0) + 1);
}

function nearest(palette: readonly number[], colour: number): number {
  const distance = (other: number): number =>
    [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
  let best = 0;
  for (const index of palette.keys()) {
    if (distance(palette[index] ?? 0) < distance(palette[best] ?? 0)) best = index;
  }
  return best;
}

function readPng(png: Buffer): { width: number; height: number; rows: readonly Buffer[] } {
  const chunks = parseChunks(png);
  const header = chunks.find(({ type }) => type === "IHDR")?.body ?? Buffer.alloc(13);
  if (header[8] !== 8 || header[9] !== 2 || header[12] !== 0)
    throw new Error("only 8-bit RGB PNGs without interlacing are supported");
  const width = header.readUInt32BE(0);
  const height = header.readUInt32BE(4);
  const data = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map(({ body }) => body)));
  const length = width * BYTES_PER_PIXEL;
  const rows: Buffer[] = [];
  for (let y = 0; y < height; y++) {
    const start = y * (length + 1);
    const line = Buffer.from(data.subarray(start + 1, start + 1 + length));
    rows.push(unfilter(data[start] ?? 0, line, rows[y - 1] ?? Buffer.alloc(length)));
  }
  return { width, height, rows };
}

/** Reverses a PNG line filter, which stores each byte's difference from the bytes to its left and above. */
function unfilter(filter: number, line: Buffer, above: Buffer): Buffer {
  for (let offset = 0; offset < line.length; offset++) {
    const a = line[offset - BYTES_PER_PIXEL] ?? 0;
    const b = above[offset] ?? 0;
    const c = above[offset - BYTES_PER_PIXEL] ?? 0;
    const predicted = [0, a, b, Math.floor((a + b) / 2), paeth(a, b, c)][filter] ?? 0;
    line[offset] = (line[offset] ?? 0) + predicted;
  }
  return line;
}

/** Paeth predictor: of left (a), above (b) and above left (c), returns the one nearest to a + b - c. */
function paeth(a: number, b: number, c: number): number {
  const [toA, toB, toC] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)] as const;
  if (toA <= toB && toA <= toC) return a;
  return toB <= toC ? b : c;
}

function parseChunks(png: Buffer): { type: string; body: Buffer }[] {
  const chunks = [];
  for (let offset = SIGNATURE.length; offset < png.length; ) {
    const length = png.readUInt32BE(offset);
    chunks.push({
      type: png.toString("latin1", offset + 4, offset + 8),
      body: png.subarray(offset + 8, offset + 8 + length),
    });
    offset += length + 12;
  }
  return chunks;
}

function chunk(type: string, body: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}
