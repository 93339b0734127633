/** What a JSON text may hold before it is parsed. */
export interface JsonLimits {
  /** Most objects and lists inside each other. */
  readonly depth: number;
  /** Most members: each object and list counts, and each further value in it. */
  readonly members: number;
  /** For each such number of bytes the text may have one member more. Default: none for any number. */
  readonly bytesPerMember?: number;
  /** Most objects in a list of the outermost object, by the name of the list. Default: no such limit. */
  readonly lists?: ReadonlyMap<string, number>;
}

/** What a JSON text has too much of: `list` stands for objects in a list of the outermost object. */
export type JsonExcess =
  | { readonly kind: "depth" | "members" }
  | { readonly kind: "list"; readonly name: string; readonly max: number };

const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const QUOTE = 0x22;
const LIST_START = 0x5b;
const LIST_END = 0x5d;
const OBJECT_START = 0x7b;
const OBJECT_END = 0x7d;

/**
 * Measures a JSON text by its brackets and commas: `JSON.parse` takes a hundred times as long for each list or object as
 * for a byte of text, and 50 bytes of memory. Does not tell whether the text is valid.
 */
export class JsonScanner {
  readonly #limits: JsonLimits;
  #depth = 0;
  #members = 0;
  #bytes = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Scans the next part of a text, and returns what it has too much of by then. Lists are recognised in one part. */
  scan(part: Uint8Array): JsonExcess | undefined {
    const { depth: maxDepth, members: maxMembers, bytesPerMember = Number.POSITIVE_INFINITY, lists } = this.#limits;
    let depth = this.#depth;
    let members = this.#members;
    let isInString = this.#isInString;
    let isEscaped = this.#isEscaped;
    /** Start of the last text directly in the outermost object. */
    let nameStart = 0;
    let maxObjects = Number.POSITIVE_INFINITY;
    let objects = 0;
    for (let i = 0; i < part.length; i++) {
      const byte = part[i];
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isInString = false;
        continue;
      }
      if (byte === QUOTE) {
        isInString = true;
        if (depth === 1) nameStart = i + 1;
        continue;
      }
      if (byte === LIST_END || byte === OBJECT_END) {
        depth -= 1;
        continue;
      }
      if (byte !== COMMA && byte !== LIST_START && byte !== OBJECT_START) continue;
      members += 1;
      if (members > maxMembers + (this.#bytes + i) / bytesPerMember) return { kind: "members" };
      if (byte === COMMA) continue;
      depth += 1;
      if (depth > maxDepth) return { kind: "depth" };
      if (lists === undefined) continue;
      if (depth === 2) {
        objects = 0;
        const isList = byte === LIST_START;
        maxObjects = (isList ? lists.get(readName(part, nameStart)) : undefined) ?? Number.POSITIVE_INFINITY;
      } else if (depth === 3 && byte === OBJECT_START && ++objects > maxObjects) {
        return { kind: "list", name: readName(part, nameStart), max: maxObjects };
      }
    }
    this.#depth = depth;
    this.#members = members;
    this.#bytes += part.length;
    this.#isInString = isInString;
    this.#isEscaped = isEscaped;
    return undefined;
  }
}

/** Returns a name without escapes that begins at an offset. */
function readName(bytes: Uint8Array, start: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, bytes.indexOf(QUOTE, start) - start).toString("latin1");
}
