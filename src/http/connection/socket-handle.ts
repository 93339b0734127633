import type { Socket } from "node:net";

/** HTTP/2 writes to the handle of its connection, below the counters of the socket. Node.js uses both for its timeouts. */
interface SocketHandle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

function getHandle(socket: Socket): SocketHandle | undefined {
  return (socket as { _handle?: SocketHandle | null })._handle ?? undefined;
}

/** Returns the bytes that wait to be passed to the system. Undefined if this version of Node.js does not tell. */
export function countQueuedBytes(socket: Socket): number | undefined {
  return getHandle(socket)?.writeQueueSize;
}

/** Returns the bytes written so far, those included that wait to be passed to the system. */
export function countWrittenBytes(socket: Socket): number {
  return getHandle(socket)?.bytesWritten ?? 0;
}
