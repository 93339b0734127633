import { constants, fstatSync, openSync, write, writeSync } from "node:fs";

/** A destination for log lines. */
export interface LogOutput {
  /** Queues a line, which includes its newline, and returns immediately. */
  write(line: string): void;
}

/** Why a line was lost: the buffer is full, a write failed (as on a full disk), or the reader is gone. */
type LogLossReason = "reader_too_slow" | "write_failed" | "output_closed";

export interface CountingLogOutput extends LogOutput {
  /** Returns the number of lost lines since the start. */
  lostLines(): Readonly<Record<LogLossReason, number>>;
}

/** Lines are combined into writes of up to this size: writes to a pipe shared by several processes are atomic up to it. */
const CHUNK_BYTES = 4096;
/** A chunk that is not full is written after this time. */
const FLUSH_INTERVAL_MS = 200;
/** An output that returned EAGAIN is tried again after this time. */
const EAGAIN_RETRY_MS = 5;
/** Lines beyond this size are dropped when the reader is too slow. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
/** Buffered lines delay the exit of the process by at most this time. */
const EXIT_FLUSH_TIMEOUT_MS = 200;
/** Time that a pending asynchronous write gets to finish at exit. */
const PENDING_WRITE_WAIT_MS = 20;

/** The lines that are not written yet, and how far the current write is. */
interface LineQueue {
  /** Whole lines: each chunk has up to CHUNK_BYTES, or is one longer line. */
  chunks: string[];
  bufferedBytes: number;
  readonly lostLines: Record<LogLossReason, number>;
  /** Lost lines that the log does not mention yet. */
  unreportedLines: number;
  /** Whether the first chunk is being written. */
  isWriting: boolean;
  /** The unwritten rest of the first chunk while the output returns EAGAIN. */
  unwritten: Buffer | undefined;
  /** Whether the reader is gone. */
  isClosed: boolean;
}

// Transitions of the queue.

function appendLine(queue: LineQueue, line: string): void {
  const { chunks, isWriting } = queue;
  const last = chunks.at(-1);
  // The first chunk must not change while it is being written.
  const fits = last !== undefined && chunks.length > (isWriting ? 1 : 0) && last.length + line.length <= CHUNK_BYTES;
  if (fits) chunks[chunks.length - 1] = last + line;
  else chunks.push(line);
  queue.bufferedBytes += line.length;
}

function loseLines(queue: LineQueue, reason: LogLossReason, count: number): void {
  queue.lostLines[reason] += count;
  queue.unreportedLines += count;
}

/** Returns false if the line was dropped because the buffer is full or the reader is gone. */
function offerLine(queue: LineQueue, line: string): boolean {
  const isFull = queue.bufferedBytes + line.length > MAX_BUFFERED_BYTES;
  if (queue.isClosed) loseLines(queue, "output_closed", 1);
  else if (isFull) loseLines(queue, "reader_too_slow", 1);
  else appendLine(queue, line);
  return !queue.isClosed && !isFull;
}

/** Returns the chunk to write; undefined: there is none, or a write is in progress. */
function beginWrite(queue: LineQueue): string | undefined {
  const [chunk] = queue.chunks;
  if (queue.isWriting || queue.isClosed || chunk === undefined) return undefined;
  queue.isWriting = true;
  return chunk;
}

/** @param unwritten undefined when the write goes on */
function suspendWrite(queue: LineQueue, unwritten: Buffer | undefined): void {
  queue.unwritten = unwritten;
}

/** Removes the first chunk, written or lost. */
function completeWrite(queue: LineQueue, chunkLength: number): void {
  queue.isWriting = false;
  queue.chunks.shift();
  queue.bufferedBytes -= chunkLength;
}

/** @param unwritten the rest of the first chunk */
function closeQueue(queue: LineQueue, unwritten: Buffer): void {
  queue.isClosed = true;
  for (const chunk of [unwritten, ...queue.chunks.slice(1)]) loseLines(queue, "output_closed", countLines(chunk));
  queue.chunks = [];
}

function reportLost(queue: LineQueue): void {
  const report = { level: 40, time: new Date().toISOString(), droppedLines: queue.unreportedLines };
  appendLine(queue, `${JSON.stringify({ ...report, msg: "log reader too slow or write failed; lines dropped" })}\n`);
  queue.unreportedLines = 0;
}

function countLines(text: string | Buffer): number {
  let count = 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", end + 1)) count += 1;
  return count;
}

/** Returns everything that is not written. A write in progress counts as written. */
function drainQueue({ chunks, isWriting, unwritten, isClosed }: LineQueue): Buffer[] {
  if (isClosed) return [];
  return [unwritten ?? "", ...chunks.slice(isWriting ? 1 : 0)].map((chunk) => Buffer.from(chunk));
}

/**
 * Writes lines to a file descriptor without blocking requests or the exit of the process, whatever the reader does. A
 * closed output discards all further lines; a write that fails loses its lines. Lost lines are counted. Used instead of
 * pino's destination, which blocks the exit forever after a failed write.
 */
export function createLogOutput(output: number): CountingLogOutput {
  const queue: LineQueue = {
    chunks: [],
    bufferedBytes: 0,
    lostLines: { reader_too_slow: 0, write_failed: 0, output_closed: 0 },
    unreportedLines: 0,
    isWriting: false,
    unwritten: undefined,
    isClosed: false,
  };
  /** Opened with the first line, as is the exit hook: many processes never log. */
  let descriptor: number | undefined;
  let flushTimer: NodeJS.Timeout | undefined;
  /** Holds the encoded chunk: a UTF-16 code unit takes up to three bytes. */
  const scratch = Buffer.allocUnsafeSlow(3 * CHUNK_BYTES);

  /** Writes a full chunk immediately and a partial one after the flush interval. */
  function scheduleFlush(): void {
    if (queue.chunks.length > 1) flush();
    else if (queue.chunks.length === 1) flushTimer ??= setTimeout(flush, FLUSH_INTERVAL_MS).unref();
  }

  function flush(): void {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    const chunk = beginWrite(queue);
    if (chunk === undefined) return;
    const isLong = chunk.length > CHUNK_BYTES;
    writeChunk(isLong ? Buffer.from(chunk) : scratch.subarray(0, scratch.write(chunk)), chunk.length);
  }

  function writeChunk(bytes: Buffer, chunkLength: number): void {
    suspendWrite(queue, undefined);
    const onWritten = (error: NodeJS.ErrnoException | null, count: number): void => {
      if (error?.code === "EAGAIN") {
        suspendWrite(queue, bytes);
        setTimeout(() => writeChunk(bytes, chunkLength), EAGAIN_RETRY_MS).unref();
        return;
      }
      if (error?.code === "EPIPE") {
        closeQueue(queue, bytes);
        return;
      }
      if (error === null && count < bytes.length) {
        writeChunk(bytes.subarray(count), chunkLength);
        return;
      }
      completeWrite(queue, chunkLength);
      if (error !== null) loseLines(queue, "write_failed", countLines(bytes));
      else if (queue.unreportedLines > 0) reportLost(queue);
      scheduleFlush();
    };
    if (descriptor === undefined || descriptor === output) {
      write(output, bytes, 0, bytes.length, null, onWritten);
      return;
    }
    let count = 0;
    let failure: NodeJS.ErrnoException | null = null;
    try {
      count = writeSync(descriptor, bytes);
    } catch (error) {
      failure = error as NodeJS.ErrnoException;
    }
    // With a long backlog the next write is deferred: recursion would overflow the stack.
    if (count === bytes.length && queue.chunks.length > 2) setImmediate(onWritten, null, count);
    else onWritten(failure, count);
  }

  function flushOnExit(): void {
    const deadline = performance.now() + EXIT_FLUSH_TIMEOUT_MS;
    if (queue.isWriting && queue.unwritten === undefined) sleepSync(PENDING_WRITE_WAIT_MS);
    let [isWritable, lostCount] = [true, 0];
    for (let bytes of drainQueue(queue)) {
      while (isWritable && bytes.length > 0) {
        try {
          bytes = bytes.subarray(writeSync(descriptor ?? output, bytes));
        } catch (error) {
          isWritable = (error as NodeJS.ErrnoException).code === "EAGAIN" && performance.now() <= deadline;
          if (isWritable) sleepSync(1);
        }
      }
      lostCount += countLines(bytes);
    }
    if (lostCount > 0) reportOnExit(lostCount);
  }

  return {
    write(line) {
      if (descriptor === undefined) {
        descriptor = openNonBlocking(output);
        process.once("exit", flushOnExit);
      }
      if (offerLine(queue, line)) scheduleFlush();
    },
    lostLines: () => queue.lostLines,
  };
}

/** Nobody can ask for the count any more, so standard error gets it if it can be written without waiting. */
function reportOnExit(lostCount: number): void {
  try {
    writeSync(openNonBlocking(2), `hop-gateway: ${lostCount} log lines could not be written before the exit\n`);
  } catch {
    // There is nowhere else to say it.
  }
}

/**
 * Opens a non-blocking descriptor of the same pipe: a blocking write, even on another thread, would delay the exit of the
 * process until the reader reads. Files, terminals and sockets are used as they are.
 */
function openNonBlocking(descriptor: number): number {
  try {
    // Not set as a flag on the descriptor itself, which other processes may share.
    if (fstatSync(descriptor).isFIFO()) {
      return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
    }
  } catch {
    // The system has no /proc, or the pipe has no reader.
  }
  return descriptor;
}

/** Blocks the thread. Used only while the process exits. */
function sleepSync(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
