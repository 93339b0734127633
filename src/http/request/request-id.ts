import { randomFillSync } from "node:crypto";

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

const ID_BYTES = 16;
const IDS_PER_BLOCK = 128;

/** Identifiers that are drawn together: a draw of random bytes costs as much as everything else about twenty of them. */
const block = { hex: "", used: IDS_PER_BLOCK };

/** Returns the id that the request carries if it is safe to log, or a new one. */
export function resolveRequestId(id: unknown): string {
  return typeof id === "string" && REQUEST_ID_PATTERN.test(id) ? id : createRequestId();
}

/** Creates the id of a request that carries none: a UUID of version 4 (RFC 9562 5.4). */
export function createRequestId(): string {
  if (block.used === IDS_PER_BLOCK) drawBlock();
  const at = block.used * 2 * ID_BYTES;
  block.used += 1;
  const { hex } = block;
  return `${hex.slice(at, at + 8)}-${hex.slice(at + 8, at + 12)}-${hex.slice(at + 12, at + 16)}-${hex.slice(at + 16, at + 20)}-${hex.slice(at + 20, at + 32)}`;
}

function drawBlock(): void {
  const bytes = randomFillSync(Buffer.alloc(ID_BYTES * IDS_PER_BLOCK));
  for (let id = 0; id < bytes.length; id += ID_BYTES) {
    bytes[id + 6] = ((bytes[id + 6] ?? 0) & 0x0f) | 0x40;
    bytes[id + 8] = ((bytes[id + 8] ?? 0) & 0x3f) | 0x80;
  }
  block.hex = bytes.toString("hex");
  block.used = 0;
}
