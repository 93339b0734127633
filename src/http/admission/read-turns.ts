import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { readTurn } from "../../resilience/clock.js";
import { FairScheduler } from "../../resilience/fair-scheduler.js";

/** Requests that all connections may begin in a turn of the event loop before none of them is read further. */
export const MAX_REQUESTS_PER_TURN = 256;

/**
 * Requests that the connections which are read in a turn from then on may be expected to bring, and least number for each:
 * sixteen quiet connections are read, or one that brought many when it was last read.
 */
const EXPECTED_REQUESTS_PER_TURN = 256;
const LEAST_EXPECTED_REQUESTS = 16;

/**
 * While more requests wait for their turn, a connection that brought many is read only if its caller may bring more:
 * thousands who come back at once wait unread instead of being refused. Not for longer than `MAX_UNREAD_MS`: what is unread may
 * be what responses wait for.
 */
export const MAX_WAITING_REQUESTS = 512;
const MAX_UNREAD_MS = 5_000;

/** Bytes that Node.js reads before a session begins, which count as one request. */
const BYTES_PER_REQUEST = 128;

/** A connection that is read in turns. */
export interface ReadConnection {
  readonly socket: Socket;
  readonly caller: string;
  /** Requests that it brought when it was last read, and the turn of the event loop in which that was. */
  requestsInTurn: number;
  readInTurn: number;
  /** Undefined until its first bytes have arrived. */
  protocol?: { listCallers?(): Iterable<string> } | undefined;
}

/**
 * Divides what is read of HTTP/2 connections among the turns of the event loop, and these among the callers. Node.js reads
 * every connection that has input in the same turn, 64 KiB of each, and creates all streams of it, up to a thousand that are
 * reset at once (CVE-2023-44487), before anything else happens: 300 such connections held up the process for 25 seconds.
 *
 * As long as little arrives, connections are read at once. After many requests in one turn, the others are stopped, and each
 * is read again in the turn of its caller. What it has sent stays in the buffers of the system meanwhile. It may be the end of
 * requests: work for them begins `untilRead`.
 */
export class ReadTurns {
  /** Beside that of requests: what is read may be the end of requests that have begun. */
  readonly #turns = new FairScheduler();
  #mayBring: (caller: string, requests: number) => boolean = () => true;
  /** Connections that Node.js reads when something arrives. */
  readonly #reading = new Set<ReadConnection>();
  /** Number of those that wait to be read. */
  #waiting = 0;
  /** Callers of open requests on these, and the end of their wait: of the connection that was stopped last. */
  readonly #unread = new Map<string, Promise<void>>();
  /** The turn of the event loop, the requests that began in it, and those that are expected after it. */
  #turn = -1;
  #requests = 0;
  #expected = 0;

  /** @param mayBring returns whether a caller may bring as many requests now: what it sends is left unread otherwise */
  limitBy(mayBring: (caller: string, requests: number) => boolean): void {
    this.#mayBring = mayBring;
  }

  /** Adds a connection that has been accepted and is being read. */
  add(connection: ReadConnection): void {
    this.#turns.noteAccepted();
    if (this.#waiting === 0) this.#reading.add(connection);
    else this.#stop(connection);
  }

  /** Removes a connection, which is read at any time from now on. */
  remove(connection: ReadConnection): void {
    this.#reading.delete(connection);
  }

  /** Counts a request, and stops reading if there are many in this turn. */
  countRequest(connection: ReadConnection): void {
    this.#count(connection, 1);
  }

  /**
   * Resolves when what the callers of some work have sent so far is read: they may have left. In the next turn of the event
   * loop, unless all of them have open requests on connections that wait: then, when these have been read once.
   */
  async untilRead(callers: Iterable<string>): Promise<void> {
    await nextTurn();
    let read: Promise<void> | undefined;
    for (const caller of callers) {
      read = this.#unread.get(caller);
      if (read === undefined) return;
    }
    await read;
  }

  /** Begins a session in the turn of its caller, with what its connection has sent so far. */
  beginSession(connection: ReadConnection, bytes: number, begin: () => void): void {
    this.#count(connection, Math.ceil(bytes / BYTES_PER_REQUEST));
    const beginUncounted = (): void => {
      begin();
      // Others need not be stopped for what is read now: sessions begin in turns.
      this.#requests = Number.NEGATIVE_INFINITY;
    };
    void this.#schedule(connection, beginUncounted, true);
  }

  #count(connection: ReadConnection, requests: number): void {
    this.#startTurn();
    if (connection.readInTurn !== this.#turn) {
      connection.readInTurn = this.#turn;
      connection.requestsInTurn = 0;
    }
    connection.requestsInTurn += requests;
    this.#requests += requests;
    if (this.#requests <= MAX_REQUESTS_PER_TURN) return;
    for (const other of this.#reading) this.#stop(other);
    this.#reading.clear();
  }

  #startTurn(): void {
    const turn = readTurn();
    if (turn === this.#turn) return;
    this.#turn = turn;
    this.#requests = 0;
    this.#expected = 0;
  }

  #stop(connection: ReadConnection): void {
    setReading(connection.socket, false);
    const read = (): void => {
      setReading(connection.socket, true);
      this.#reading.add(connection);
    };
    const callers = new Set(connection.protocol?.listCallers?.());
    // What has begun comes first: its end may be what is to be read.
    const wait = this.#schedule(connection, read, callers.size > 0);
    for (const caller of callers) this.#unread.set(caller, wait);
    void wait.then(() => {
      for (const caller of callers) if (this.#unread.get(caller) === wait) this.#unread.delete(caller);
    });
  }

  /** Returns a promise that resolves when the connection has been read, or would have been if it were not closed. */
  #schedule(connection: ReadConnection, read: () => void, hasBegun: boolean): Promise<void> {
    this.#waiting += 1;
    const { caller, socket } = connection;
    const mustReadAt = performance.now() + MAX_UNREAD_MS;
    return new Promise((resolve) => {
      const readInTurn = (): void => {
        if (!socket.destroyed && performance.now() < mustReadAt && this.#bringsTooMany(connection)) {
          // In a later turn of the event loop, behind the others.
          setImmediate(() => this.#turns.schedule({ caller }, readInTurn, hasBegun));
          return;
        }
        this.#waiting -= 1;
        // Node.js reads at the beginning of the next turn of the event loop.
        setImmediate(resolve);
        if (socket.destroyed) return;
        this.#startTurn();
        read();
        this.#expected += Math.max(LEAST_EXPECTED_REQUESTS, connection.requestsInTurn);
        if (this.#expected >= EXPECTED_REQUESTS_PER_TURN) this.#turns.endTurn();
      };
      this.#turns.schedule({ caller }, readInTurn, hasBegun);
    });
  }

  #bringsTooMany({ caller, requestsInTurn }: ReadConnection): boolean {
    return requestsInTurn > LEAST_EXPECTED_REQUESTS && !this.#mayBring(caller, requestsInTurn);
  }
}

/**
 * Stops or starts to read a connection, below its socket: an HTTP/2 session reads from its handle. Nothing of this is known to
 * the socket, which pauses and resumes by itself.
 */
function setReading(socket: Socket, isReading: boolean): void {
  const { _handle: handle } = socket as { _handle?: { readStart?(): void; readStop?(): void } | null };
  if (isReading) handle?.readStart?.();
  else handle?.readStop?.();
}
