import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** An HTTP response as it left the server, and its request. */
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
 * Reports every response to a request under /v1/ that lets scripts read a request ID, as only the gateway's do: whatever
 * the client, the HTTP version and the way in which it was written. Patches Node's classes in this process, so that the service needs
 * no hook for it. An error here or in the callback delays no response; it ends the process, or the Vitest run, as a
 * failure. Refers to nothing outside itself, because its source is sent to other processes.
 * @returns a function that removes the patch
 */
export function recordResponses(
  classes: readonly [typeof ServerResponse, typeof Http2ServerResponse],
  onResponse: (response: RecordedResponse) => void,
): () => void {
  const undo: (() => void)[] = [];
  const exposedHeader = "access-control-expose-headers";
  function runGuarded(action: () => void): void {
    try {
      action();
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
      runGuarded(() => {
        const [status, ...rest] = args as [number, ...unknown[]];
        const passedHeaders = rest.find((argument) => typeof argument === "object") ?? {};
        const headers: Record<string, string> = {};
        for (const [name, value] of Object.entries(this.getHeaders())) headers[name] = String(value);
        if (Array.isArray(passedHeaders)) {
          for (let i = 0; i < passedHeaders.length; i += 2)
            headers[String(passedHeaders[i]).toLowerCase()] = String(passedHeaders[i + 1]);
        } else for (const [name, value] of Object.entries(passedHeaders)) headers[name.toLowerCase()] = String(value);
        heads.set(this, { status, headers });
      });
      return writeHead.apply(this, [...args]);
    };
    patched.end = function (this: PatchedResponse, ...args) {
      runGuarded(() => {
        const url = (this.req.url ?? "").replace(/^https?:\/\/[^/?#]*/i, "");
        if (this.writableEnded || !url.startsWith("/v1/")) return;
        const set = Object.entries(this.getHeaders()).map(([name, value]) => [name, String(value)]);
        const head = heads.get(this) ?? { status: this.statusCode, headers: Object.fromEntries(set) };
        if (head.headers[exposedHeader]?.includes("X-Request-Id") !== true) return;
        const [path = "", query = ""] = url.split(/\?(.*)/s);
        const parameters = query === "" ? [] : query.split("&").map((pair) => (pair.split("=")[0] ?? "").slice(0, 64));
        const body = typeof args[0] === "function" ? "" : String(args[0] ?? "");
        onResponse({ method: this.req.method ?? "", path, parameters, ...head, body });
      });
      return end.apply(this, [...args]);
    };
    undo.push(() => Object.assign(patched, { writeHead, end }));
  }
  return () => {
    for (const restore of undo) restore();
  };
}

/** Records all of the first responses, then one in `SAMPLE_INTERVAL`: later ones are mostly alike. */
const UNSAMPLED_COUNT = 2_000;
const SAMPLE_INTERVAL = 50;

/**
 * Returns the URL of a module that records the responses of a process that imports it first: one line of JSON each, in a
 * file whose name starts with `file`.
 */
export function createRecorderModule(file: string): string {
  const source = `
import { appendFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
${recordResponses}
let count = 0;
recordResponses([ServerResponse, Http2ServerResponse], (response) => {
  count += 1;
  if (count > ${UNSAMPLED_COUNT} && count % ${SAMPLE_INTERVAL} !== 0) return;
  appendFileSync(${JSON.stringify(file)} + "-" + process.pid, JSON.stringify(response) + "\\n");
});`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
