import sonicBoom from "sonic-boom";
import { type BufferStream, countLines, readBacklog, writeBacklogAtExit } from "./log-backlog.js";
import { openNonBlocking } from "./log-descriptor.js";

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

/** What became of the lines so far. */
interface LossState {
  readonly lostLines: Record<LogLossReason, number>;
  /** Lost lines that the log does not mention yet. */
  unreportedLines: number;
  /** Why the output takes no lines at present. */
  obstacle: LogLossReason;
}

// Transitions of the state.

function loseLines(state: LossState, count: number): void {
  state.lostLines[state.obstacle] += count;
  state.unreportedLines += count;
}

function recordFailure(state: LossState, code: string | undefined): void {
  if (code === "EPIPE") state.obstacle = "output_closed";
  else state.obstacle = code === "EAGAIN" ? "reader_too_slow" : "write_failed";
}

function recordSuccess(state: LossState): void {
  state.obstacle = "reader_too_slow";
}

/** Returns the line that tells the reader of the log about lost lines; undefined: there is nothing, or nobody, to tell. */
function formatLossReport({ unreportedLines, obstacle }: LossState): string | undefined {
  if (unreportedLines === 0 || obstacle === "output_closed") return undefined;
  const report = { level: 40, time: new Date().toISOString(), droppedLines: unreportedLines };
  return `${JSON.stringify({ ...report, msg: "log reader too slow or write failed; lines dropped" })}\n`;
}

/**
 * Writes lines to a file descriptor without blocking requests or the exit of the process, whatever the reader does. A
 * write that fails is tried again from where it stopped; a closed output discards all further lines. Lost lines are
 * counted. Used instead of pino's destination, which blocks the exit forever after a failed write.
 * @param openDescriptor returns what to write to
 */
export function createLogOutput(output: number, openDescriptor = openNonBlocking): CountingLogOutput {
  const state: LossState = {
    lostLines: { reader_too_slow: 0, write_failed: 0, output_closed: 0 },
    unreportedLines: 0,
    obstacle: "reader_too_slow",
  };
  /** Opened with the first line, as many processes never log. Undefined again when the output is closed. */
  let stream: BufferStream | undefined;
  /** Whether the stream dropped the line that it got last. */
  let isDropped = false;
  let flushTimer: NodeJS.Timeout | undefined;

  function open(): BufferStream {
    const { descriptor, isBlocking, isPipe } = openDescriptor(output);
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
      isDropped = true;
    });
    opened.on("write", () => {
      recordSuccess(state);
      opened.minLength = min;
    });
    opened.on("drain", () => reportLoss(opened));
    opened.on("error", (error: NodeJS.ErrnoException) => handleError(opened, error));
    process.once("exit", () => {
      if (stream !== undefined) writeBacklogAtExit(opened, descriptor);
    });
    return opened;
  }

  function handleError(failed: BufferStream, { code }: NodeJS.ErrnoException): void {
    recordFailure(state, code);
    clearTimeout(flushTimer);
    // Otherwise each line would try again, in vain and at the cost of an exception.
    failed.minLength = Number.POSITIVE_INFINITY;
    if (code === "EPIPE") {
      stream = undefined;
      for (const chunk of readBacklog(failed)) loseLines(state, countLines(chunk));
    } else flushTimer = setTimeout(flush, code === "EAGAIN" ? EAGAIN_RETRY_MS : FLUSH_INTERVAL_MS).unref();
  }

  function flush(): void {
    flushTimer = undefined;
    stream?.flush();
  }

  /** Returns false if the stream dropped the line because its buffer is full. */
  function offerLine(opened: BufferStream, line: string): boolean {
    isDropped = false;
    opened.write(Buffer.from(line));
    flushTimer ??= setTimeout(flush, FLUSH_INTERVAL_MS).unref();
    return !isDropped;
  }

  function reportLoss(opened: BufferStream): void {
    const report = formatLossReport(state);
    if (report !== undefined && offerLine(opened, report)) state.unreportedLines = 0;
  }

  return {
    write(line) {
      if (state.obstacle === "output_closed") {
        loseLines(state, 1);
        return;
      }
      stream ??= open();
      const opened = stream;
      if (offerLine(opened, line)) reportLoss(opened);
      else loseLines(state, 1);
    },
    lostLines: () => state.lostLines,
  };
}
