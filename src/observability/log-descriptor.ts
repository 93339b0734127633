import { constants, fstatSync, openSync } from "node:fs";
import { Socket } from "node:net";

/** A file descriptor to write to. */
export interface LogDescriptor {
  readonly descriptor: number;
  /** Whether a write can wait for the reader or the disk. */
  readonly isBlocking: boolean;
  readonly isPipe: boolean;
}

/**
 * Returns a non-blocking descriptor of the same pipe or socket: a blocking write, even on another thread, would delay the
 * exit of the process until the reader reads. Files and terminals are used as they are.
 */
export function openNonBlocking(output: number): LogDescriptor {
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
