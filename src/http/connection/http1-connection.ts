import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type {
  Connection as AcceptedConnection,
  ConnectionProtocol,
  OverloadManager,
} from "../admission/overload-manager.js";
import { removeItem } from "../request/in-flight-requests.js";
import { countSharedBytes } from "../request/response.js";
import type { HttpLimits } from "./http-limits.js";
import { SendDeadline } from "./send-deadline.js";

/** The end of a request head. */
const HEAD_END = "\r\n\r\n";

/** Most slices of a connection that are parsed in its turn. A slice holds at most one complete request head. */
const MAX_SLICES_PER_TURN = 8;

/**
 * An HTTP/1.1 connection that Node's server has accepted: its unanswered requests, and backpressure for pipelined ones.
 * What it may not send yet stays unread, and nothing is lost.
 *
 * Node.js parses everything that one read returns, up to 64 KiB or 2,000 requests, before anything else happens. That
 * is the fastest way for connections that wait for each response, so they are left alone. A connection that pipelines
 * is throttled: parsed request by request, in turns with the others, and only as long as it has few unanswered
 * requests.
 */
export class Http1Connection implements ConnectionProtocol {
  /** Responses that are not complete, in the order of their requests. */
  readonly pending: ServerResponse[] = [];
  /** The response to the latest request, complete or not. */
  latest: ServerResponse | undefined;
  /** Whether the connection is about to close because of its input. */
  isRejected = false;
  readonly #socket: Socket;
  readonly #limits: HttpLimits;
  readonly #overload: OverloadManager;
  readonly #caller: string;
  readonly #sendDeadline: SendDeadline;
  /** Listeners of Node's HTTP/1.1 server: they parse bytes, and the end of the input. */
  readonly #parse: (bytes: Buffer) => void;
  readonly #parseEnd: () => void;
  #isThrottled = false;
  /** Received bytes that are not parsed yet. */
  #held: Buffer | undefined;
  /** Requests since the connection last had neither an unanswered one nor held bytes. */
  #burst = 0;
  /** Whether the input has ended and that is not yet passed on to Node.js. */
  #hasEnded = false;
  #isDiscarding = false;
  #isScheduled = false;

  constructor(
    { socket, caller }: Pick<AcceptedConnection, "socket" | "caller">,
    limits: HttpLimits,
    overload: OverloadManager,
  ) {
    const parse = socket.listeners("data").at(-1);
    const parseEnd = socket.listeners("end").at(-1);
    if (parse === undefined || parseEnd === undefined) {
      throw new Error("this version of Node.js has no input listeners for HTTP/1.1");
    }
    this.#socket = socket;
    this.#limits = limits;
    this.#overload = overload;
    this.#caller = caller;
    this.#sendDeadline = new SendDeadline(limits);
    this.#parse = parse as (bytes: Buffer) => void;
    this.#parseEnd = parseEnd as () => void;
    socket.once("close", () => {
      this.#held = undefined;
      // Pipelined responses get no event at the end of their connection.
      for (const res of [...this.pending]) this.remove(res);
    });
  }

  /** Adds the response to a request. Returns whether the connection has just begun to exceed its limit of them. */
  add(res: ServerResponse): boolean {
    this.pending.push(res);
    this.latest = res;
    const isPipelining = this.pending.length > 1;
    this.#burst = this.#isThrottled || isPipelining ? this.#burst + 1 : 1;
    if (!isPipelining) return false;
    this.#overload.countPipelined(1);
    return !this.#isThrottled && this.pending.length === this.#limits.pipelinedRequests + 1;
  }

  /** Removes a response that is complete or given up. */
  remove(res: ServerResponse): void {
    if (!removeItem(this.pending, res)) return;
    if (this.pending.length > 0) this.#overload.countPipelined(-1);
    this.#continueLater();
    this.#passOnEnd();
  }

  /** Whether Node.js is parsing a burst of requests at present. */
  get isBursting(): boolean {
    return this.pending.length > this.#limits.pipelinedRequests;
  }

  /** Puts itself between the connection and Node's parser, which then no longer reads from the connection itself. */
  throttle(): void {
    const socket = this.#socket;
    if (this.#isThrottled || socket.destroyed) return;
    this.#isThrottled = true;
    socket.off("data", this.#parse);
    socket.off("end", this.#parseEnd);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => {
      this.#hasEnded = true;
      this.#passOnEnd();
    });
    // Node.js resumes a connection whenever it has discarded a request body.
    socket.on("resume", () => {
      if (this.#held === undefined) return;
      socket.pause();
      this.#continueLater();
    });
    socket.on("drain", () => this.#continueLater());
  }

  /** Ignores all further input, since no further request of the connection is served. */
  discardInput(): void {
    this.#isDiscarding = true;
    if (this.#held === undefined) return;
    this.#held = undefined;
    this.#socket.resume();
  }

  isIdle(): boolean {
    return this.pending.length === 0;
  }

  /** Does nothing: the time limits of Node's server suffice. */
  checkPeer(): void {}

  isOverdue(now: number): boolean {
    const socket = this.#socket;
    const waiting = socket.writableLength;
    // Node.js adds up the bytes written of all that waits: not for connections at which nothing does.
    const sent = waiting === 0 ? 0 : socket.bytesWritten - waiting;
    return this.#sendDeadline.isOver(now, waiting, sent);
  }

  countBytes(): number {
    let bytes = (this.#held?.length ?? 0) + (this.pending.at(-1)?.req.readableLength ?? 0);
    for (const response of this.pending) {
      const { writableLength } = response;
      if (writableLength > 0) bytes += Math.max(0, writableLength - countSharedBytes(response));
    }
    return bytes;
  }

  closeGracefully(): void {
    for (const res of this.pending) if (!res.headersSent) res.setHeader("Connection", "close");
  }

  closeIfIdle(): void {
    // A connection with an incomplete request has nothing to finish.
    if (this.isIdle()) this.#socket.destroySoon();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.#isDiscarding) return;
    if (this.#held !== undefined) {
      this.#held = Buffer.concat([this.#held, chunk]);
      return;
    }
    if (this.pending.length === 0) this.#burst = 0;
    this.#held = chunk;
    // A single request needs no turn.
    this.#parseHeld(isPipelined(chunk) ? 0 : 1);
  }

  #mayParse(): boolean {
    const isBelowLimits =
      this.pending.length === 0 ||
      // The remaining bytes may belong to the latest request.
      this.pending.at(-1)?.req.complete === false ||
      (this.pending.length < this.#limits.pipelinedRequests && this.#overload.hasRoomToPipeline);
    const socket: Socket & { readonly _paused?: boolean } = this.#socket;
    // Node.js refuses input while it has paused the connection for the same reason.
    return isBelowLimits && !socket.writableNeedDrain && socket._paused !== true;
  }

  /** Parses at most `maxSlices` slices of the held bytes; the rest waits for the next turn or for a response to end. */
  #parseHeld(maxSlices: number): void {
    const socket = this.#socket;
    for (let slices = 0; this.#held !== undefined; slices++) {
      if (slices === maxSlices || !this.#mayParse()) {
        socket.pause();
        this.#continueLater();
        return;
      }
      const held = this.#held;
      const index = held.indexOf(HEAD_END);
      const end = index === -1 ? held.length : index + HEAD_END.length;
      this.#held = end === held.length ? undefined : held.subarray(end);
      // Before the last slice is parsed: Node.js pauses the connection again if nobody reads a request body.
      if (this.#held === undefined) socket.resume();
      this.#parse(held.subarray(0, end));
      if (socket.destroyed) this.#held = undefined;
    }
    this.#passOnEnd();
  }

  /**
   * Passes on the end of the input, for which Node.js aborts the requests in progress: pipelined ones are all answered
   * first. The caller of a single one is gone, and its response may be a stream without an end.
   */
  #passOnEnd(): void {
    if (!this.#hasEnded || this.#held !== undefined || this.#isDiscarding || this.#socket.destroyed) return;
    if (this.pending.length > 0 && this.#burst > 1) return;
    this.#hasEnded = false;
    this.#parseEnd();
  }

  #continueLater(): void {
    if (this.#held === undefined || this.#isScheduled || !this.#mayParse()) return;
    this.#isScheduled = true;
    this.#overload.eventLoop.schedule({ caller: this.#caller }, () => {
      this.#isScheduled = false;
      // Never after the close: Node.js has given the parser to another connection by then.
      if (this.#held !== undefined && !this.#socket.destroyed) this.#parseHeld(MAX_SLICES_PER_TURN);
    });
  }
}

/** Returns whether bytes hold more than one request head. */
export function isPipelined(bytes: Buffer): boolean {
  const end = bytes.indexOf(HEAD_END);
  return end !== -1 && bytes.includes(HEAD_END, end + 1);
}
