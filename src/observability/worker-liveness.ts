import type { Worker } from "node:cluster";
import type { DynamicDocument } from "../http/documents.js";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { createJsonReport } from "./probes.js";

// The primary answers /livez for its workers. It asks each of them over IPC whether its event loop still turns.

/** Messages between the primary and a worker. */
interface PingMessage {
  readonly type: "ping" | "pong";
}

/** Less than the timeout of a probe (3 s in deploy/), so that the probe learns the reason. */
const REPLY_TIMEOUT_MS = 2_000;

/**
 * Creates the liveness document of several workers.
 *
 * - A worker that has exited does not count as long as another one serves: the primary restarts it, and a restart of the
 *   whole service would only interrupt the others. Without any worker nothing is served: 503.
 * - A worker that does not reply is not restarted by anyone, and still gets its share of the connections: 503, so that
 *   whoever probes restarts the service.
 *
 * @param listWorkers returns the workers that listen
 */
export function createWorkerLiveness(listWorkers: () => readonly Worker[]): () => Promise<DynamicDocument> {
  let current: Promise<DynamicDocument> | undefined;

  async function check(): Promise<DynamicDocument> {
    const replies = await Promise.all(listWorkers().map(pingWorker));
    const unresponsiveWorkers = replies.filter((reply) => reply === "none").length;
    if (unresponsiveWorkers > 0) return createJsonReport(503, { status: "UNRESPONSIVE", unresponsiveWorkers });
    return replies.includes("pong")
      ? createJsonReport(200, { status: "OK" })
      : createJsonReport(503, { status: "NO_WORKER" });
  }

  // Concurrent probes share one check.
  return () => {
    current ??= check().finally(() => {
      current = undefined;
    });
    return current;
  };
}

async function pingWorker(worker: Worker): Promise<"pong" | "none" | "exited"> {
  const listening = new AbortController();
  // The reply to an earlier ping proves as much.
  const replied = new Promise<"pong" | "exited">((resolve) => {
    const onMessage = ({ type }: PingMessage): void => {
      if (type === "pong") resolve("pong");
    };
    const onExit = (): void => resolve("exited");
    worker.on("message", onMessage).once("exit", onExit);
    listening.signal.addEventListener("abort", () => worker.off("message", onMessage).off("exit", onExit));
  });
  worker.send({ type: "ping" } satisfies PingMessage, undefined, () => {});
  try {
    return await withTimeoutOrFallback<"pong" | "none" | "exited">(replied, REPLY_TIMEOUT_MS, "none");
  } finally {
    listening.abort();
  }
}

/** Answers the primary's pings, in a worker. */
export function answerPings(): void {
  process.on("message", ({ type }: PingMessage) => {
    if (type === "ping") process.send?.({ type: "pong" } satisfies PingMessage, undefined, undefined, () => {});
  });
}
