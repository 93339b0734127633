import type { ServerResponse } from "node:http";
import { createTurnClock } from "../../resilience/clock.js";

/** What Node's responses keep their state in, beneath their public methods. */
interface ResponseState {
  /** The head as it is sent; null before. */
  _header: string | null;
  _headerSent: boolean;
  /** Whether the response is complete. */
  finished: boolean;
  readonly _keepAliveTimeout: number;
}

const readTurnTime = createTurnClock(() => Date.now());

/** The Date header, and the second that it is for. */
const date = { seconds: Number.NaN, line: "" };

/**
 * Sends a complete response to GET or POST with status 200 over HTTP/1.1: in a single write, the bytes that `writeHead`
 * and `end` would send. Those check each header again and pass head, body and the end of the message on as separate
 * chunks, which takes three times as long.
 *
 * Returns false, and does nothing, for a response that is not an ordinary one: it waits for an earlier response, the
 * connection closes after it, or this version of Node.js keeps its state in another way.
 * @param headerLines valid headers as `formatHeaderLines` returns them, Content-Length among them, but none of the
 * connection
 * @param body bytes, or a text of which each character is one byte
 */
export function trySendInOneWrite(res: ServerResponse, headerLines: string, body: string | Uint8Array): boolean {
  const { req, socket } = res;
  // Not writable: the connection is destroyed, or ends with the response to input that is not valid.
  if (!socket?.writable || !res.shouldKeepAlive) return false;
  // A server that shuts down has set a header of its own.
  if (req.httpVersion !== "1.1" || res.hasHeader("connection")) return false;
  if (req.method !== "GET" && !(req.method === "POST" && req.complete)) return false;
  const state = res as unknown as ResponseState;
  const { _header, _headerSent, finished, _keepAliveTimeout } = state;
  if (_header !== null || _headerSent !== false || finished !== false || !(_keepAliveTimeout >= 1000)) return false;
  const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(_keepAliveTimeout / 1000)}\r\n\r\n`;
  const head = `HTTP/1.1 200 OK\r\n${headerLines}${formatDateLine()}${keepAlive}`;
  state._header = head;
  state._headerSent = true;
  state.finished = true;
  const finish = (error?: Error | null): void => {
    // Otherwise the end of the connection ends the response, too.
    if (!error) res.emit("finish");
  };
  if (typeof body === "string") socket.write(head + body, "latin1", finish);
  else {
    socket.cork();
    socket.write(head, "latin1");
    socket.write(body, finish);
    socket.uncork();
  }
  return true;
}

/** Formats alternating names and values as lines of an HTTP/1.1 head. */
export function formatHeaderLines(headers: readonly string[]): string {
  let lines = "";
  for (let i = 0; i + 1 < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
}

function formatDateLine(): string {
  const now = readTurnTime();
  const seconds = Math.floor(now / 1000);
  if (seconds !== date.seconds) {
    date.seconds = seconds;
    date.line = `Date: ${new Date(now).toUTCString()}\r\n`;
  }
  return date.line;
}
