import { Agent, get } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BridgeService, GetTransferStatusResponse_State as State } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createWatchRecord, type WatchRecord } from "./watch-record.js";

/** A caller that watches transactions until it is closed. It resumes wherever its stream was cut, as callers should. */
export interface WatchCaller {
  readonly record: WatchRecord;
  close(): Promise<void>;
}

/** Longest time until a caller resumes: those of a replica that stops do not all come at once. */
const RESUME_WITHIN_MS = 500;

interface WatchOptions {
  readonly hashes: readonly string[];
  /** Loopback address to call from: each is a caller of its own. */
  readonly localAddress?: string;
}

/** Runs one stream after the other. @param openStream resolves at the end of a stream, with whether it is complete */
function resumeForever(
  openStream: (record: WatchRecord, signal: AbortSignal) => Promise<"complete" | "cut">,
): WatchCaller {
  const record = createWatchRecord();
  const closing = new AbortController();
  const { signal } = closing;
  const done = (async () => {
    while (!signal.aborted) {
      const end = await openStream(record, signal).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        if (!signal.aborted) record.failures.push(message);
        return "cut";
      });
      if (end === "complete" || signal.aborted) return;
      record.resumptions += 1;
      await sleep(Math.random() * RESUME_WITHIN_MS, undefined, { signal }).catch(() => {});
    }
  })();
  return {
    record,
    close() {
      closing.abort();
      return done;
    },
  };
}

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

/** Watches over Server-Sent Events and HTTP/1.1. */
export function watchEvents(url: string, { hashes, localAddress }: WatchOptions): WatchCaller {
  const query = hashes.map((hash) => `transferHash=${hash}`).join("&");
  return resumeForever(
    (record, signal) =>
      new Promise((resolve, reject) => {
        const headers = record.token === "" ? {} : { "Last-Event-ID": record.token };
        const options = { agent, headers, signal, ...(localAddress === undefined ? {} : { localAddress }) };
        const request = get(`${url}/v1/transfers:watch?${query}`, options, (response) => {
          if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`));
          let text = "";
          let isComplete = false;
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => {
            const blocks = (text + chunk).split("\n\n");
            text = blocks.pop() ?? "";
            for (const block of blocks) if (recordEvent(record, block) === "end") isComplete = true;
          });
          // Also after a connection that was reset.
          response.on("error", () => {});
          response.on("close", () => resolve(isComplete ? "complete" : "cut"));
        });
        request.on("error", reject);
      }),
  );
}

/** Records an event. Returns its kind. */
function recordEvent(record: WatchRecord, block: string): string | undefined {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/, 2) as [string, string]));
  const kind = fields.get("event");
  record.token = fields.get("id") ?? record.token;
  if (kind === "transfer" || kind === "unknown") {
    const { state = "UNKNOWN", transactionHash = "" } = JSON.parse(fields.get("data") ?? "{}");
    record.states.push({ transactionHash, state });
  }
  return kind;
}

/** Watches over gRPC. Callers share the connection of a client. */
export function watchMessages(client: Client<typeof BridgeService>, { hashes }: WatchOptions): WatchCaller {
  return resumeForever(async (record, signal) => {
    let isBookmark = true;
    const request = { transferHash: [...hashes], resumeToken: record.token };
    for await (const { resumeToken, event } of client.watchTransfers(request, { signal })) {
      record.token = resumeToken;
      isBookmark = event.case === "bookmark";
      if (event.case === "transfer") {
        const { transactionHash, state } = event.value;
        record.states.push({ transactionHash, state: State[state] });
      } else if (event.case === "unknown") record.states.push({ transactionHash: "", state: "UNKNOWN" });
    }
    return isBookmark ? "cut" : "complete";
  });
}

/** Creates a client over gRPC, with a connection of its own. */
export function createWatchClient(url: string, localAddress = "127.0.0.1"): Client<typeof BridgeService> {
  const { hostname: host, port } = new URL(url);
  const createConnection = () => connect({ host, port: Number(port), localAddress });
  return createClient(BridgeService, createGrpcTransport({ baseUrl: url, nodeOptions: { createConnection } }));
}
