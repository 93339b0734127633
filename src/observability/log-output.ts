import { constants, fstatSync, openSync, write, writeSync } from "node:fs";

/** Where log lines go. */
export interface LogOutput {
  /** Takes a line with its end; returns at once. */
  write(line: string): void;
}

/**
 * Lines are written together, up to this many bytes: no more, since several processes may share one pipe, which keeps
 * only writes up to this size in one piece.
 */
const CHUNK_BYTES = 4096;
/** What is not yet that much is written after this time. */
const FLUSH_INTERVAL_MS = 200;
/** After which time an output that could take nothing is tried again. */
const EAGAIN_RETRY_MS = 5;
/** Where nobody reads the lines fast enough, more than this is dropped rather than kept. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
/** How long the end of the process may be held up by what is not written yet. */
const EXIT_FLUSH_TIMEOUT_MS = 200;
/** So long a write that is under way may take to be done when the process ends. */
const PENDING_WRITE_WAIT_MS = 20;

/**
 * Writes lines to a file descriptor without holding anything up: neither the requests that they tell of nor the end of
 * the process, whatever the reader does. An output that is gone takes nothing more; one that fails loses those lines.
 * Pino's own destination would hold up the end for ever after any write that failed.
 */
export function createLogOutput(output: number): LogOutput {
  /** Opened with the first line, as is what happens at the end: many a process never writes one. */
  let descriptor: number | undefined;
  /** Whole lines, each entry up to chunkBytes, or one longer line. */
  let chunks: string[] = [];
  /** The bytes of a chunk on their way: a character has up to three. */
  const scratch = Buffer.allocUnsafeSlow(3 * CHUNK_BYTES);
  let keptBytes = 0;
  let dropped = 0;
  /** Whether the first chunk is being written, or is partly. */
  let isWriting = false;
  /** What of it is left to write while the output can take nothing. */
  let left: Buffer | undefined;
  let isGone = false;
  let timer: NodeJS.Timeout | undefined;

  function add(line: string): void {
    const last = chunks.at(-1);
    // The first one may be under way.
    const fits = last !== undefined && chunks.length > (isWriting ? 1 : 0) && last.length + line.length <= CHUNK_BYTES;
    if (fits) chunks[chunks.length - 1] = last + line;
    else chunks.push(line);
    keptBytes += line.length;
  }

  /** A whole chunk goes at once; lines that do not fill one wait for more, but not long. */
  function schedule(): void {
    if (chunks.length > 1) start();
    else if (chunks.length === 1) timer ??= setTimeout(start, FLUSH_INTERVAL_MS).unref();
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    const [chunk] = chunks;
    if (isWriting || isGone || chunk === undefined) return;
    isWriting = true;
    const isLong = chunk.length > CHUNK_BYTES;
    send(isLong ? Buffer.from(chunk) : scratch.subarray(0, scratch.write(chunk)), chunk.length);
  }

  function send(bytes: Buffer, length: number): void {
    left = undefined;
    const written = (error: NodeJS.ErrnoException | null, count: number): void => {
      if (error?.code === "EAGAIN") {
        left = bytes;
        setTimeout(() => send(bytes, length), EAGAIN_RETRY_MS).unref();
        return;
      }
      if (error?.code === "EPIPE") {
        isGone = true;
        chunks = [];
        return;
      }
      if (error === null && count < bytes.length) {
        send(bytes.subarray(count), length);
        return;
      }
      isWriting = false;
      chunks.shift();
      keptBytes -= length;
      if (error === null && dropped > 0) tellDropped();
      schedule();
    };
    if (descriptor === undefined || descriptor === output) {
      write(output, bytes, 0, bytes.length, null, written);
      return;
    }
    let count = 0;
    let failure: NodeJS.ErrnoException | null = null;
    try {
      count = writeSync(descriptor, bytes);
    } catch (error) {
      failure = error as NodeJS.ErrnoException;
    }
    // With a long backlog not at once: it would pile up on the stack.
    if (count === bytes.length && chunks.length > 2) setImmediate(written, null, count);
    else written(failure, count);
  }

  function tellDropped(): void {
    const time = new Date().toISOString();
    add(
      `${JSON.stringify({ level: 40, time, droppedLines: dropped, msg: "log lines were dropped: nobody read them" })}\n`,
    );
    dropped = 0;
  }

  function finish(): void {
    const until = performance.now() + EXIT_FLUSH_TIMEOUT_MS;
    if (isWriting && left === undefined) sleepSync(PENDING_WRITE_WAIT_MS);
    if (isWriting) chunks.shift();
    const rest = [left ?? "", ...chunks].map((chunk) => Buffer.from(chunk));
    for (let bytes of isGone ? [] : rest) {
      while (bytes.length > 0) {
        try {
          bytes = bytes.subarray(writeSync(descriptor ?? output, bytes));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || performance.now() > until) return;
          sleepSync(1);
        }
      }
    }
  }

  return {
    write(line) {
      if (isGone) return;
      if (descriptor === undefined) {
        descriptor = openNonBlocking(output);
        process.once("exit", finish);
      }
      if (keptBytes + line.length > MAX_BUFFERED_BYTES) {
        dropped += 1;
        return;
      }
      add(line);
      schedule();
    },
  };
}

/**
 * A descriptor of the same pipe on which a write never waits for the reader: a write that waits, be it on another thread,
 * holds up the end of the process. What else stands behind a descriptor (a file, a terminal, a socket) is taken as it is.
 */
function openNonBlocking(descriptor: number): number {
  try {
    // Not by a flag on the descriptor itself, which other processes may share.
    if (fstatSync(descriptor).isFIFO()) {
      return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
    }
  } catch {
    // Not on this system, or nobody reads it.
  }
  return descriptor;
}

/** Waits without letting anything else run: the process is ending. */
function sleepSync(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
