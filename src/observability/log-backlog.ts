import type { EventEmitter } from "node:events";
import { writeSync } from "node:fs";
import { openNonBlocking } from "./log-descriptor.js";

/**
 * A sonic-boom stream of content mode `buffer`, which its types lack, and the fields that hold what it has not written,
 * which no method returns: its version is pinned for them.
 */
export interface BufferStream extends EventEmitter {
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

/** Buffered lines delay the exit of the process by at most this time, */
const EXIT_FLUSH_TIMEOUT_MS = 3_000;
/** or by this time if the reader reads nothing. */
const EXIT_STALL_TIMEOUT_MS = 500;
/** Time that a pending asynchronous write gets to finish at exit. */
const PENDING_WRITE_WAIT_MS = 20;

/** Returns everything that is not written. A write in progress counts as written. */
export function readBacklog({ _writing, _writingBuf, _bufs }: BufferStream): Uint8Array[] {
  const chunks = _bufs.map((parts) => Buffer.concat(parts));
  return _writing ? chunks : [_writingBuf, ...chunks];
}

export function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, end + 1)) count += 1;
  return count;
}

/**
 * Writes what a stream still holds while the process exits, within a bounded time, and tells standard error how many
 * lines are lost. Used instead of `flushSync` of the stream, which tries forever on a full disk or a closed pipe.
 */
export function writeBacklogAtExit(stream: BufferStream, descriptor: number): void {
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
