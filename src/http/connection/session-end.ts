import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** What Node.js calls to end a session: `session.destroy()`, the last response after a GOAWAY, and errors lead here. */
interface SessionHandle {
  destroy(code: number, isSocketDestroyed: boolean): void;
}

/** The first version of nghttp2 that survives what is described below; Node.js 20 has 1.61. */
const FIRST_SOUND_VERSION = [1, 68] as const;

/**
 * Makes a session end in the next turn of the event loop, in versions of Node.js where that is necessary: if it ends while
 * nghttp2 reads a chunk, as after a GOAWAY without open streams, an invalid frame later in the same chunk fails an
 * assertion of nghttp2, which ends the process.
 */
export function deferSessionEnd(session: ServerHttp2Session, socket: Socket): void {
  const handle = isSound(process.versions.nghttp2) ? undefined : getHandle(session);
  if (handle === undefined) return;
  const { destroy } = handle;
  handle.destroy = (code, isSocketDestroyed) =>
    void setImmediate(() => destroy.call(handle, code, isSocketDestroyed || socket.destroyed));
}

/** Ends a session at once. Must not be called by an event of a session, since nghttp2 may be reading. */
export function endSessionNow(session: ServerHttp2Session): void {
  const handle = getHandle(session);
  // The method of its class is left.
  if (handle !== undefined) Reflect.deleteProperty(handle, "destroy");
  session.destroy();
}

/** Returns undefined after the end of the session, and if this version of Node.js has no such handle. */
function getHandle(session: ServerHttp2Session): SessionHandle | undefined {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === "kHandle");
  return symbol && (session as unknown as Readonly<Record<symbol, SessionHandle | undefined>>)[symbol];
}

function isSound(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  const [soundMajor, soundMinor] = FIRST_SOUND_VERSION;
  return major > soundMajor || (major === soundMajor && minor >= soundMinor);
}
