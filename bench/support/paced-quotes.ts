import { Agent, createServer, get } from "node:http";
import { listenOnFreePort } from "./recorded-server.js";

// Quotes at a fixed rate in a process of their own, whether or not earlier ones are answered: what a caller sees beside other load.

export interface PacedQuotesInput {
  readonly url: string;
  readonly paths: readonly string[];
  readonly perSecond: number;
}

/** The quotes since the last report that the service was there for. */
export interface PacedQuotesReport {
  readonly answered: number;
  /** Answers other than 200. */
  readonly refused: number;
  /** Requests without an answer, because no process listened or it was killed. */
  readonly unanswered: number;
  /** Milliseconds from when a request was due to the end of its answer. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
}

/** Starts to send; resolves with the URL of the reports. */
export async function serveQuotes({ url, paths, perSecond }: PacedQuotesInput): Promise<string> {
  const agent = new Agent({ keepAlive: true });
  let latencies: number[] = [];
  let counts = { refused: 0, unanswered: 0 };
  let sent = 0;
  const send = (dueAt: number): void => {
    const request = get(url + paths[sent++ % paths.length], { agent }, (response) => {
      response.resume().once("end", () => {
        if (response.statusCode === 200) latencies.push(performance.now() - dueAt);
        else counts.refused += 1;
      });
    });
    request.on("error", () => {
      counts.unanswered += 1;
    });
  };
  const began = performance.now();
  setInterval(() => {
    for (let dueAt = 0; ; ) {
      dueAt = began + (sent * 1_000) / perSecond;
      if (dueAt > performance.now()) return;
      send(dueAt);
    }
  }, 1);
  return listenOnFreePort(
    createServer((_, res) => {
      latencies.sort((a, b) => a - b);
      const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
      const latencyMs = { p50: at(0.5), p99: at(0.99), max: at(1) };
      res.end(JSON.stringify({ answered: latencies.length, ...counts, latencyMs } satisfies PacedQuotesReport));
      latencies = [];
      counts = { refused: 0, unanswered: 0 };
    }),
  );
}
