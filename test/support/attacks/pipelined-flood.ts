import { connect, type Socket } from "node:net";
import { attackerAddress } from "./caller-addresses.js";
import { type Flood, REOPEN_INTERVAL_MS } from "./http2-flood.js";

export interface PipelinedFloodOptions {
  readonly port: number;
  readonly connections: number;
  /** Requests that each connection sends at once. */
  readonly requests: number;
  readonly path: string;
  readonly callers: number;
  /** Whether the attacker reads the responses. */
  readonly isReading: boolean;
  /** Opens connections again as often as the server closes them. */
  readonly isPersistent?: boolean;
}

/** Sends many HTTP/1.1 requests over each connection without waiting for a response (RFC 9112 9.3.2). */
export function startPipelinedFlood(options: PipelinedFloodOptions): Flood & { readonly receivedBytes: () => number } {
  const { port, connections, requests, path, callers, isReading, isPersistent = false } = options;
  const bytes = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: attacked\r\n\r\n`.repeat(requests));
  const held = new Map<number, Socket>();
  let [sent, received] = [0, 0];
  const fill = (): void => {
    for (let index = 0; index < connections; index += 1) {
      if (held.has(index)) continue;
      const localAddress = attackerAddress(index, callers);
      const socket = connect({ port, host: "127.0.0.1", ...(localAddress && { localAddress }) });
      held.set(index, socket);
      socket.once("close", () => held.delete(index));
      socket.on("error", () => {});
      if (isReading) {
        socket.on("data", (chunk) => {
          received += chunk.length;
        });
      } else socket.pause();
      socket.write(bytes);
      sent += requests;
    }
  };
  fill();
  const timer = isPersistent ? setInterval(fill, REOPEN_INTERVAL_MS) : undefined;
  return {
    openConnections: () => held.size,
    // Responses that were not read cannot be told from requests that were not answered.
    openRequests: () => held.size * requests,
    sentRequests: () => sent,
    receivedBytes: () => received,
    close() {
      clearInterval(timer);
      for (const socket of held.values()) socket.destroy();
    },
  };
}
