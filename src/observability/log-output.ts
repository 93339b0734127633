import type { EventEmitter } from "node:events";
import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import sonicBoom from "sonic-boom";

/** Why a line was lost: the buffer is full, a write failed (as on a full disk), or the reader is gone. */
type LogLossReason = "reader_too_slow" | "write_failed" | "output_closed";

/** Lines are combined into writes of this size: each wakes a thread. Those that wait for a write, into larger ones. */
const WRITE_BYTES = { min: 32 * 1024, max: 64 * 1024 };
/** PIPE_BUF of Linux: writes of up to 4096 bytes to a pipe that several processes share are atomic. */
const PIPE_WRITE_BYTES = { min: 3072, max: 4096 };
/** Lines that do not fill a write are written after this time; so are lines whose write failed. */
const FLUSH_INTERVAL_MS = 200;
/** An output that returned EAGAIN is tried again after this time. */
const EAGAIN_RETRY_MS = 5;
/** Lines beyond this size are dropped: half a second of the access log at 30,000 requests per second. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Buffered lines delay the exit of the process by at most this time, */
const EXIT_FLUSH_TIMEOUT_MS = 3_000;
/** or by this time if the reader reads nothing. */
const EXIT_STALL_TIMEOUT_MS = 500;
/** Time that a pending asynchronous write gets to finish at exit. */
const PENDING_WRITE_WAIT_MS = 20;

/**
 * A sonic-boom stream of content mode `buffer`, which its types lack, and the fields that hold what it has not written,
 * which no method returns: its version is pinned for them.
 */
interface BufferStream extends EventEmitter {
  write(bytes: Uint8Array): boolean;
  flush(): void;
  /** A line that makes the waiting bytes this many is written with them at once, unless a write is in progress. */
  minLength: number;
  /** Whether an asynchronous write is in progress. */
  readonly _writing: boolean;
  /** The chunk that is being written, or the unwritten rest of one whose write failed. */
  readonly _writingBuf: Uint8Array;
  /** The chunks of the next writes, in parts. */
  readonly _bufs: readonly (readonly Uint8Array[])[];
}

/**
 * Writes lines to a file descriptor without blocking requests or the exit of the process, whatever the reader does. A
 * write that fails is tried again from where it stopped; a closed output discards all further lines. Lost lines are
 * counted. Used instead of pino's destination, which blocks the exit forever after a failed write.
 */
export class BufferedLogOutput {
  readonly #output: number;
  readonly #openDescriptor: typeof openNonBlocking;
  readonly #lostLines: Record<LogLossReason, number> = { reader_too_slow: 0, write_failed: 0, output_closed: 0 };
  /** Lost lines that the log does not mention yet. */
  #unreportedLines = 0;
  /** Why the output takes no lines at present. */
  #obstacle: LogLossReason = "reader_too_slow";
  /** Opened with the first line, as many processes never log. Undefined again when the output is closed. */
  #stream: BufferStream | undefined;
  /** Whether the stream dropped the line that it got last. */
  #isDropped = false;
  #flushTimer: NodeJS.Timeout | undefined;

  /**
   * @param output a file descriptor
   * @param openDescriptor returns what to write to
   */
  constructor(output: number, openDescriptor = openNonBlocking) {
    this.#output = output;
    this.#openDescriptor = openDescriptor;
  }

  /** Queues a line, which includes its newline, and returns immediately. */
  write(line: string): void {
    if (this.#obstacle === "output_closed") {
      this.#loseLines(1);
      return;
    }
    this.#stream ??= this.#open();
    const opened = this.#stream;
    if (this.#offerLine(opened, line)) this.#reportLoss(opened);
    else this.#loseLines(1);
  }

  /** Returns the number of lost lines since the start. */
  countLostLines(): Readonly<Record<LogLossReason, number>> {
    return this.#lostLines;
  }

  #open(): BufferStream {
    const { descriptor, isBlocking, isPipe } = this.#openDescriptor(this.#output);
    const { min, max } = isPipe ? PIPE_WRITE_BYTES : WRITE_BYTES;
    const opened = new sonicBoom.SonicBoom({
      fd: descriptor,
      // As text, each line would cost a look at all that waits with it for the next write.
      contentMode: "buffer",
      // A write that cannot block needs no thread.
      sync: !isBlocking,
      minLength: min,
      maxWrite: max,
      maxLength: MAX_BUFFERED_BYTES,
      // Its own retry after 100 ms is too late for a pipe of 64 KiB, and keeps an ending process alive.
      retryEAGAIN: () => false,
    }) as unknown as BufferStream;
    opened.on("drop", () => {
      this.#isDropped = true;
    });
    opened.on("write", () => {
      this.#obstacle = "reader_too_slow";
      opened.minLength = min;
    });
    opened.on("drain", () => this.#reportLoss(opened));
    opened.on("error", (error: NodeJS.ErrnoException) => this.#handleError(opened, error));
    process.once("exit", () => {
      if (this.#stream !== undefined) writeBacklogAtExit(opened, descriptor);
    });
    return opened;
  }

  #handleError(failed: BufferStream, { code }: NodeJS.ErrnoException): void {
    clearTimeout(this.#flushTimer);
    // Otherwise each line would try again, in vain and at the cost of an exception.
    failed.minLength = Number.POSITIVE_INFINITY;
    if (code === "EPIPE") {
      this.#obstacle = "output_closed";
      this.#stream = undefined;
      for (const chunk of readBacklog(failed)) this.#loseLines(countLines(chunk));
      return;
    }
    this.#obstacle = code === "EAGAIN" ? "reader_too_slow" : "write_failed";
    this.#flushAfter(code === "EAGAIN" ? EAGAIN_RETRY_MS : FLUSH_INTERVAL_MS);
  }

  #flushAfter(delayMs: number): void {
    const flush = (): void => {
      this.#flushTimer = undefined;
      this.#stream?.flush();
    };
    this.#flushTimer = setTimeout(flush, delayMs).unref();
  }

  /** Returns false if the stream dropped the line because its buffer is full. */
  #offerLine(opened: BufferStream, line: string): boolean {
    this.#isDropped = false;
    opened.write(Buffer.from(line));
    if (this.#flushTimer === undefined) this.#flushAfter(FLUSH_INTERVAL_MS);
    return !this.#isDropped;
  }

  #loseLines(count: number): void {
    this.#lostLines[this.#obstacle] += count;
    this.#unreportedLines += count;
  }

  /** Tells the reader of the log about lost lines. */
  #reportLoss(opened: BufferStream): void {
    if (this.#unreportedLines === 0 || this.#obstacle === "output_closed") return;
    const report = { level: 40, time: new Date().toISOString(), droppedLines: this.#unreportedLines };
    const line = `${JSON.stringify({ ...report, msg: "log reader too slow or write failed; lines dropped" })}\n`;
    if (this.#offerLine(opened, line)) this.#unreportedLines = 0;
  }
}

/** Returns everything that is not written. A write in progress counts as written. */
function readBacklog({ _writing, _writingBuf, _bufs }: BufferStream): Uint8Array[] {
  const chunks = _bufs.map((parts) => Buffer.concat(parts));
  return _writing ? chunks : [_writingBuf, ...chunks];
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, end + 1)) count += 1;
  return count;
}

/**
 * Writes what a stream still holds while the process exits, within a bounded time, and tells standard error how many
 * lines are lost. Used instead of `flushSync` of the stream, which tries forever on a full disk or a closed pipe.
 */
function writeBacklogAtExit(stream: BufferStream, descriptor: number): void {
  const deadline = performance.now() + EXIT_FLUSH_TIMEOUT_MS;
  if (stream._writing) sleepSync(PENDING_WRITE_WAIT_MS);
  let [isWritable, lostCount, progressAt] = [true, 0, performance.now()];
  for (let bytes of readBacklog(stream)) {
    while (isWritable && bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(descriptor, bytes));
        progressAt = performance.now();
      } catch (error) {
        const isWaiting = performance.now() <= Math.min(deadline, progressAt + EXIT_STALL_TIMEOUT_MS);
        isWritable = isWaiting && (error as NodeJS.ErrnoException).code === "EAGAIN";
        if (isWritable) sleepSync(1);
      }
    }
    lostCount += countLines(bytes);
  }
  // What cannot be written now could not be written by the write in progress either.
  if (stream._writing && !isWritable) lostCount += countLines(stream._writingBuf);
  if (lostCount > 0) reportOnExit(lostCount);
}

/** Nobody can ask for the count any more, so standard error gets it if it can be written without waiting. */
function reportOnExit(lostCount: number): void {
  try {
    const message = `hop-gateway: ${lostCount} log lines could not be written before the exit\n`;
    writeSync(openNonBlocking(2).descriptor, message);
  } catch {
    // There is nowhere else to say it.
  }
}

/** Blocks the thread. Used only while the process exits. */
function sleepSync(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/**
 * Returns a non-blocking descriptor of the same pipe or socket: a blocking write, even on another thread, would delay the
 * exit of the process until the reader reads. Files and terminals are used as they are.
 */
export function openNonBlocking(output: number): {
  readonly descriptor: number;
  /** Whether a write can wait for the reader or the disk. */
  readonly isBlocking: boolean;
  readonly isPipe: boolean;
} {
  try {
    const stats = fstatSync(output);
    if (stats.isFIFO()) {
      // Not set as a flag on the descriptor itself, which other processes may share.
      const descriptor = openSync(`/proc/self/fd/${output}`, constants.O_WRONLY | constants.O_NONBLOCK);
      return { descriptor, isBlocking: false, isPipe: true };
    }
    if (stats.isSocket()) {
      // A socket cannot be opened again. Node.js sets the flag, as it does for process.stdout.
      new Socket({ fd: output, readable: false, writable: true }).unref();
      return { descriptor: output, isBlocking: false, isPipe: false };
    }
    return { descriptor: output, isBlocking: true, isPipe: false };
  } catch {
    // The system has no /proc, the pipe has no reader, or the descriptor is closed.
    return { descriptor: output, isBlocking: true, isPipe: true };
  }
}
