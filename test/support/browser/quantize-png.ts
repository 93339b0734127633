import { crc32, deflateSync, inflateSync } from "node:zlib";

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BYTES_PER_PIXEL = 3;

/**
 * The same picture with at most 256 colours, in about a third of the bytes: those that are there least become the
 * nearest of the others, which nobody sees in a picture of text.
 * @param png as a browser makes it: eight bits of red, green and blue, not interlaced
 */
export function quantizePng(png: Buffer): Buffer {
  const { width, height, rows } = readPng(png);
  const counts = new Map<number, number>();
  for (const row of rows) for (let at = 0; at < row.length; at += BYTES_PER_PIXEL) count(counts, row.readUIntBE(at, 3));
  const byCount = [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const palette = byCount.slice(0, 256);
  const indexOf = new Map(byCount.map((colour, index) => [colour, index < 256 ? index : nearest(palette, colour)]));

  const lines = Buffer.alloc(height * (width + 1));
  for (const [y, row] of rows.entries()) {
    for (let x = 0; x < width; x++) {
      lines[y * (width + 1) + 1 + x] = indexOf.get(row.readUIntBE(x * BYTES_PER_PIXEL, 3)) ?? 0;
    }
  }
  const header = Buffer.from(chunksOf(png).find(({ type }) => type === "IHDR")?.body ?? []);
  // An index into the palette.
  header[9] = 3;
  const colours = Buffer.alloc(palette.length * 3);
  for (const [index, colour] of palette.entries()) colours.writeUIntBE(colour, index * 3, 3);
  return Buffer.concat([
    signature,
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
  const chunks = chunksOf(png);
  const header = chunks.find(({ type }) => type === "IHDR")?.body ?? Buffer.alloc(13);
  if (header[8] !== 8 || header[9] !== 2 || header[12] !== 0) throw new Error("not the kind of PNG that is read here");
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

/** Undoes what makes each line of a PNG smaller: it holds only how it differs from what is to its left and above it. */
function unfilter(filter: number, line: Buffer, above: Buffer): Buffer {
  for (let at = 0; at < line.length; at++) {
    const a = line[at - BYTES_PER_PIXEL] ?? 0;
    const b = above[at] ?? 0;
    const c = above[at - BYTES_PER_PIXEL] ?? 0;
    const guess = [0, a, b, Math.floor((a + b) / 2), paeth(a, b, c)][filter] ?? 0;
    line[at] = (line[at] ?? 0) + guess;
  }
  return line;
}

/** Of left, above and above left, the one nearest to left + above - above left. */
function paeth(a: number, b: number, c: number): number {
  const [toA, toB, toC] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)] as const;
  if (toA <= toB && toA <= toC) return a;
  return toB <= toC ? b : c;
}

function chunksOf(png: Buffer): { type: string; body: Buffer }[] {
  const chunks = [];
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), body: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

function chunk(type: string, body: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, check]);
}
