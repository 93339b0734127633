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

/** Where bodies are counted. */
interface BodyAccount {
  bodyChanged(bytes: number): void;
  bodyEnded(body: IncomingBody): void;
}

/** The part of a request body that has arrived. The overload manager counts what it takes until it ends. */
export class IncomingBody {
  readonly chunks: Buffer[] = [];
  readonly #context: { readonly caller: string };
  readonly #account: BodyAccount;
  readonly #refuse: () => void;
  #size = 0;
  #weight = OPEN_BODY_BYTES;

  /** @param refuse answers the request without the remainder of its body, and calls `end` */
  constructor(context: { readonly caller: string }, account: BodyAccount, refuse: () => void) {
    this.#context = context;
    this.#account = account;
    this.#refuse = refuse;
  }

  /** Who sends it: not read before it is asked for, because it costs as much as the rest of this class. */
  get caller(): string {
    return this.#context.caller;
  }

  /** The bytes in all chunks. */
  get size(): number {
    return this.#size;
  }

  /** What the body takes; 0 when it is not counted any more. */
  get weight(): number {
    return this.#weight;
  }

  append(chunk: Buffer): void {
    const { chunks } = this;
    const isWasteful = chunk.buffer.byteLength > MAX_READ_FACTOR * chunk.length + MAX_READ_EXCESS_BYTES;
    chunks.push(isWasteful ? copyBytes(chunk) : chunk);
    this.#size += chunk.length;
    if (chunks.length === MAX_PENDING_CHUNKS) chunks.splice(0, MAX_PENDING_CHUNKS, Buffer.concat(chunks));
    this.#weigh();
  }

  /** Takes the first bytes out. */
  consume(length: number): void {
    const rest = Buffer.concat(this.chunks).subarray(length);
    this.chunks.splice(0, this.chunks.length, copyBytes(rest));
    this.#size = rest.length;
    this.#weigh();
  }

  /** Stops counting the body: it is complete, or given up. The chunks stay. */
  end(): void {
    if (this.#weight === 0) return;
    this.#account.bodyEnded(this);
    this.#weight = 0;
  }

  /** Gives the body up: until its caller has read the refusal the request stays, but not its bytes. */
  giveUp(): void {
    this.end();
    this.chunks.length = 0;
    // A reader that waits for these bytes would look for them for ever.
    this.#size = 0;
    this.#refuse();
  }

  #weigh(): void {
    if (this.#weight === 0) return;
    const weight = OPEN_BODY_BYTES + this.#size + CHUNK_BYTES * this.chunks.length;
    const change = weight - this.#weight;
    this.#weight = weight;
    this.#account.bodyChanged(change);
  }
}

/** Copies bytes to memory of their own: buffers of the pool would keep those of others. */
function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
