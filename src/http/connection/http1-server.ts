import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { removeItem } from "../request/remove-item.js";
import type { HttpLimits } from "./http-limits.js";

/** How long a refused connection may take to close its end. Closing ours at once would often lose the answer. */
const LINGER_MS = 1000;

/** What is wrong with a request that Node.js does not hand over. */
export interface ProtocolError {
  /** Code of Node's error, CONNECT_METHOD, or one of SESSION_FAULTS. */
  readonly code: string;
  /** The bytes at which it was noticed. */
  readonly rawPacket: Buffer;
}

/** Stands for the method CONNECT, which asks for a tunnel and is no request that could be answered as such. */
export const CONNECT_METHOD = "CONNECT";

export interface Http1Options {
  readonly limits: HttpLimits;
  isDraining(): boolean;
  onRequest(req: IncomingMessage, res: ServerResponse): void;
  /** Bytes came that are no HTTP/1.1 request, or not in time. Gives the whole answer, which ends the connection. */
  onProtocolError(fault: ProtocolError, socket: Socket): string;
}

/** The answers to the requests of one HTTP/1.1 connection. */
interface PendingResponses {
  /** Those that are not out yet, in the order of their requests. */
  readonly pending: ServerResponse[];
  /** The answer to the last request, out or not. */
  latest: ServerResponse | undefined;
}

/**
 * Takes requests and refuses what is none, on the connections of a server of HTTP/1.1.
 * @returns the answers of a connection that are not out yet, in the order of their requests
 */
export function serveHttp1(
  http1: Server,
  { limits, isDraining, onRequest, onProtocolError }: Http1Options,
): (socket: Duplex) => readonly ServerResponse[] {
  const answersOf = new WeakMap<Duplex, PendingResponses>();
  function answersOn(socket: Duplex): PendingResponses {
    const known = answersOf.get(socket);
    if (known !== undefined) return known;
    const answers: PendingResponses = { pending: [], latest: undefined };
    answersOf.set(socket, answers);
    return answers;
  }
  function serve(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const answers = answersOn(socket);
    const { pending } = answers;
    // Requests that wait in line on one connection take memory like those of one HTTP/2 connection.
    if (pending.length >= limits.concurrentStreams) socket.destroy();
    // Behind an answer that said it is the last, nothing is answered any more.
    if (socket.destroyed || answers.latest?.shouldKeepAlive === false) return;
    pending.push(res);
    answers.latest = res;
    res.on("close", () => {
      removeItem(pending, res);
      // Where the answer began before the drain it did not say that it is the last.
      if (isDraining()) socket.destroySoon();
    });
    if (isDraining()) res.setHeader("Connection", "close");
    onRequest(req, res);
  }
  // Whoever waits for an answer is not stalling; only one who leaves it unread, or says nothing, is.
  http1.on("timeout", (socket) => {
    if (socket.writableLength > 0 || answersOn(socket).pending.length === 0) socket.destroy();
  });
  http1.on("request", serve);
  // An expectation that we do not know is no reason to refuse.
  http1.on("checkExpectation", serve);

  const refused = new WeakSet<Duplex>();
  function refuse(socket: Duplex, answer: string | undefined): void {
    refused.add(socket);
    if (answer === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(answer);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
  /** Ends a connection on which nothing more can be read once the answers to what came before are out. */
  function closeAfter(socket: Duplex, answers: readonly ServerResponse[]): void {
    refused.add(socket);
    let left = answers.length;
    for (const answer of answers) {
      answer.once("close", () => {
        left -= 1;
        if (left === 0) socket.destroy();
      });
    }
  }
  http1.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    if (refused.has(socket)) return;
    const code = error.code ?? "";
    const { pending: answers, latest } = answersOn(socket);
    const open = latest !== undefined && answers.includes(latest) ? latest : undefined;
    const whole = answers.filter((answer) => answer.req.complete);
    const isAnswered = latest !== undefined && open === undefined && !latest.req.complete;
    if (isAnswered || (!code.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT")) refuse(socket, undefined);
    else if (whole.length > 0) {
      // What does not parse came after whole requests, whose answers still go out: it must not be taken for one.
      closeAfter(socket, whole);
    } else if (open?.headersSent) refuse(socket, undefined);
    else refuse(socket, onProtocolError({ code, rawPacket: error.rawPacket ?? Buffer.alloc(0) }, socket as Socket));
  });
  http1.on("connect", (_req, socket) => {
    const before = [...answersOn(socket).pending];
    if (before.length > 0) closeAfter(socket, before);
    else refuse(socket, onProtocolError({ code: CONNECT_METHOD, rawPacket: Buffer.alloc(0) }, socket as Socket));
  });

  return (socket) => answersOn(socket).pending;
}
