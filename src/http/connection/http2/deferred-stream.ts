import type { ServerHttp2Stream } from "node:http2";
import type { FairScheduler } from "../fair-scheduler.js";

/** Serves a stream in its turn, with the end of an empty body that comes before: its listeners would miss it. */
export function serveInTurn(stream: ServerHttp2Stream, schedule: FairScheduler, serve: () => void): void {
  let hasEnded = false;
  stream.once("end", () => {
    hasEnded = true;
  });
  schedule(() => {
    if (stream.destroyed) return;
    serve();
    if (hasEnded) stream.emit("end");
  });
}
