import type { ServerHttp2Session } from "node:http2";

/** The first version of nghttp2 that survives what is described below; Node.js 20 has 1.61. */
const FIRST_SOUND_VERSION = [1, 68] as const;

/**
 * Makes a session end in the next turn of the event loop, in versions of Node.js where that is necessary: if it ends while
 * nghttp2 reads a chunk, as after a GOAWAY without open streams, an invalid frame later in the same chunk fails an
 * assertion of nghttp2, which ends the process.
 */
export function deferSessionEnd(session: ServerHttp2Session): void {
  if (isSound(process.versions.nghttp2)) return;
  let isEnding = false;
  // Node.js itself ends sessions by this method too. Those that it closes accept no more streams meanwhile.
  session.destroy = (error, code) => {
    if (isEnding) return;
    isEnding = true;
    setImmediate(() => endSessionNow(session, error, code));
  };
}

/** Ends a session at once. Must not be called by an event of a session, since nghttp2 may be reading. */
export function endSessionNow(session: ServerHttp2Session, ...reason: Parameters<ServerHttp2Session["destroy"]>): void {
  // The method of its class is left.
  Reflect.deleteProperty(session, "destroy");
  session.destroy(...reason);
}

function isSound(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  const [soundMajor, soundMinor] = FIRST_SOUND_VERSION;
  return major > soundMajor || (major === soundMajor && minor >= soundMinor);
}
