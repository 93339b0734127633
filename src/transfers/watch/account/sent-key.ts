import { hash } from "node:crypto";

/** Returns a hash of 48 bits. */
export function computeSentKey(text: string): number {
  return hash("sha256", text, "buffer").readUIntBE(0, 6);
}
