import { takeLargestFirst } from "./largest-first.js";

/** The memory that incomplete request bodies take, of all callers together. */
export interface BodyBudget {
  /**
   * Counts a body from now on, until `end` is called.
   * @param refuse answers the request without the remainder of its body, and calls `end`
   */
  receive(context: { readonly caller: string }, refuse: () => void): IncomingBody;
  /** Returns the bytes that incomplete bodies take. */
  countBytes(): number;
  /** Returns how many requests were refused so far. */
  countRefused(): number;
}

/** The part of a request body that has arrived. */
export interface IncomingBody {
  readonly chunks: Buffer[];
  /** The bytes in all chunks. */
  readonly size: number;
  append(chunk: Buffer): void;
  /** Takes the first bytes out. */
  consume(length: number): void;
  /** Stops counting the body: it is complete, or given up. The chunks stay. */
  end(): void;
}

/** What an open request takes in addition to its connection or stream while its body is incomplete. */
const OPEN_BODY_BYTES = 4096;

/** What each chunk takes, however small it is. */
const CHUNK_BYTES = 300;

/** Number of chunks that are joined into one to bound their overhead. */
const MAX_PENDING_CHUNKS = 64;

/**
 * Chunks of HTTP/2 are parts of what one read returned, up to 64 KiB, and keep all of it. A chunk is copied if that is
 * larger by more than this factor. Other copies would only add to the work of the garbage collector.
 */
const MAX_READ_FACTOR = 4;
const MAX_READ_EXCESS_BYTES = 1024;

/** Share of the budget that remains in use after requests are refused: otherwise the next chunk refuses another. */
const TARGET_SHARE = 0.75;

interface Totals {
  bytes: number;
  readonly open: Set<CountedBody>;
  onGrowth(): void;
}

/** A class because there is one for each request with a body. */
class CountedBody implements IncomingBody {
  readonly chunks: Buffer[] = [];
  size = 0;
  /** What the body takes; 0 when it is not counted any more. */
  weight = OPEN_BODY_BYTES;

  constructor(
    readonly context: { readonly caller: string },
    readonly refuse: () => void,
    private readonly totals: Totals,
  ) {
    totals.open.add(this);
    totals.bytes += OPEN_BODY_BYTES;
    totals.onGrowth();
  }

  append(chunk: Buffer): void {
    const { chunks } = this;
    const isWasteful = chunk.buffer.byteLength > MAX_READ_FACTOR * chunk.length + MAX_READ_EXCESS_BYTES;
    chunks.push(isWasteful ? copyBytes(chunk) : chunk);
    this.size += chunk.length;
    if (chunks.length === MAX_PENDING_CHUNKS) chunks.splice(0, MAX_PENDING_CHUNKS, Buffer.concat(chunks));
    this.weigh();
    this.totals.onGrowth();
  }

  consume(length: number): void {
    const rest = Buffer.concat(this.chunks).subarray(length);
    this.chunks.splice(0, this.chunks.length, copyBytes(rest));
    this.size = rest.length;
    this.weigh();
  }

  end(): void {
    if (!this.totals.open.delete(this)) return;
    this.totals.bytes -= this.weight;
    this.weight = 0;
  }

  private weigh(): void {
    if (this.weight === 0) return;
    const weight = OPEN_BODY_BYTES + this.size + CHUNK_BYTES * this.chunks.length;
    this.totals.bytes += weight - this.weight;
    this.weight = weight;
  }
}

/** Creates a budget. Beyond `maxBytes` the caller with the most bytes loses its largest bodies first. */
export function createBodyBudget(maxBytes: number): BodyBudget {
  let refused = 0;
  let isReducing = false;
  const totals: Totals = {
    bytes: 0,
    open: new Set(),
    onGrowth() {
      if (totals.bytes <= maxBytes || isReducing) return;
      isReducing = true;
      // Not while the reader of a body handles its chunk.
      process.nextTick(reduce);
    },
  };

  function reduce(): void {
    const holdings = Array.from(totals.open, (body) => ({
      caller: body.context.caller,
      item: body,
      bytes: body.weight,
    }));
    for (const { item: body } of takeLargestFirst(holdings)) {
      if (totals.bytes <= maxBytes * TARGET_SHARE) break;
      if (body.weight === 0) continue;
      refused += 1;
      body.end();
      // Until its caller has read the refusal the request stays, but not its bytes.
      body.chunks.length = 0;
      body.refuse();
    }
    isReducing = false;
  }

  return {
    receive: (context, refuse) => new CountedBody(context, refuse, totals),
    countBytes: () => totals.bytes,
    countRefused: () => refused,
  };
}

/** Copies bytes to memory of their own: buffers of the pool would keep those of others. */
function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
