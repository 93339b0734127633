import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** An answer over HTTP as it left the server, and what was asked. */
export interface RecordedResponse {
  readonly method: string;
  readonly path: string;
  /** Names of the parameters; their values can hold keys. */
  readonly parameters: readonly string[];
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Args = readonly unknown[];
interface PatchedResponse {
  readonly req: IncomingMessage | Http2ServerRequest;
  readonly statusCode: number;
  readonly writableEnded: boolean;
  getHeaders(): Readonly<Record<string, unknown>>;
  writeHead(...args: Args): unknown;
  end(...args: Args): unknown;
}

/**
 * Tells of every answer to a request under /v1/ that has an id, as only the gateway's have, whoever asked, by whichever
 * version of HTTP and however it was written. It works on Node's own classes of this process, since the service is not to
 * know of it. A fault here, or in who is told, holds up no answer and ends the process, or a run of Vitest, in failure.
 * Uses nothing from around itself, so that its source can be sent to another process.
 * @returns what undoes it
 */
export function recordResponses(
  classes: readonly [typeof ServerResponse, typeof Http2ServerResponse],
  onAnswer: (answer: RecordedResponse) => void,
): () => void {
  const undo: (() => void)[] = [];
  const idHeader = "x-request-id";
  function carefully(act: () => void): void {
    try {
      act();
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
  for (const { prototype } of classes) {
    const patched = prototype as unknown as PatchedResponse;
    const { writeHead, end } = patched;
    const heads = new WeakMap<PatchedResponse, Pick<RecordedResponse, "status" | "headers">>();
    patched.writeHead = function (this: PatchedResponse, ...args) {
      carefully(() => {
        const [status, ...more] = args as [number, ...unknown[]];
        const given = more.find((each) => typeof each === "object") ?? {};
        const headers: Record<string, string> = {};
        for (const [name, value] of Object.entries(this.getHeaders())) headers[name] = String(value);
        if (Array.isArray(given)) {
          for (let i = 0; i < given.length; i += 2) headers[String(given[i]).toLowerCase()] = String(given[i + 1]);
        } else for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = String(value);
        heads.set(this, { status, headers });
      });
      return writeHead.apply(this, [...args]);
    };
    patched.end = function (this: PatchedResponse, ...args) {
      carefully(() => {
        const url = (this.req.url ?? "").replace(/^https?:\/\/[^/?#]*/i, "");
        if (this.writableEnded || !url.startsWith("/v1/")) return;
        const set = Object.entries(this.getHeaders()).map(([name, value]) => [name, String(value)]);
        const head = heads.get(this) ?? { status: this.statusCode, headers: Object.fromEntries(set) };
        if (head.headers[idHeader] === undefined) return;
        const [path = "", query = ""] = url.split(/\?(.*)/s);
        const parameters = query === "" ? [] : query.split("&").map((pair) => (pair.split("=")[0] ?? "").slice(0, 64));
        const body = typeof args[0] === "function" ? "" : String(args[0] ?? "");
        onAnswer({ method: this.req.method ?? "", path, parameters, ...head, body });
      });
      return end.apply(this, [...args]);
    };
    undo.push(() => Object.assign(patched, { writeHead, end }));
  }
  return () => {
    for (const each of undo) each();
  };
}

/** Many answers are like many others: all of the first ones, then one of so many. */
const UNSAMPLED_COUNT = 2_000;
const SAMPLE_INTERVAL = 50;

/**
 * A module, as a URL, that records the answers of the process that imports it first: each a line of JSON in a file whose
 * name begins so.
 */
export function createRecorderModule(file: string): string {
  const source = `
import { appendFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
${recordResponses}
let count = 0;
recordResponses([ServerResponse, Http2ServerResponse], (answer) => {
  count += 1;
  if (count > ${UNSAMPLED_COUNT} && count % ${SAMPLE_INTERVAL} !== 0) return;
  appendFileSync(${JSON.stringify(file)} + "-" + process.pid, JSON.stringify(answer) + "\\n");
});`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
