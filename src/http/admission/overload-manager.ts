import type { Socket } from "node:net";
import { ServiceError } from "../../errors.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { FairScheduler } from "../../resilience/fair-scheduler.js";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import { capToFileDescriptorLimit, type HttpLimits } from "../connection/http-limits.js";
import type { RequestContext } from "../request/request-context.js";
import { IncomingBody } from "./incoming-body.js";
import { MAX_WAITING_REQUESTS, type ReadConnection, ReadTurns } from "./read-turns.js";

/** Why a request, a stream or a connection was refused or closed, as `hop_gateway_limit_cuts_total` names it. */
export type OverloadCause = "unsent_bytes" | "response_deadline" | "open_streams" | "received_bytes" | "event_loop";

/** What callers occupy at present. */
export interface OverloadLoad {
  readonly connections: number;
  /** Open requests over HTTP/2, and unanswered requests over HTTP/1.1 beyond the first of each connection. */
  readonly openStreams: number;
  readonly pipelinedRequests: number;
  /** Requests without a complete response. */
  readonly requests: number;
  /** Bytes that wait at the latest check: for callers to read them, or for this process to read them. */
  readonly unsentBytes: number;
  /** What incomplete request bodies take. */
  readonly receivedBytes: number;
  /** Pieces of work that wait for the turn of their caller. */
  readonly waitingForTurn: number;
  /** How many requests, connections and streams have been refused or closed at a limit so far, by cause. */
  readonly cuts: Readonly<Record<OverloadCause, number>>;
}

/** What each protocol reports about a connection, and does with it. */
export interface ConnectionProtocol {
  /** Returns whether the connection has no open request. */
  isIdle(): boolean;
  /** Returns the callers of its open requests, some of them repeatedly. Absent: the connection is not read in turns. */
  listCallers?(): Iterable<string>;
  /** Closes the connection if its peer breaks the rules of the protocol. Called every second. */
  checkPeer(now: number): void;
  /** Closes responses that their caller has not read in time; returns whether the whole connection is late. */
  isOverdue(now: number): boolean;
  /** Returns the bytes that wait: for the peer to read them, or for this process to read them. */
  countBytes(): number;
  /** Tells the peer to send no more requests, and closes the connection after those in progress. */
  closeGracefully(): void;
  /** Closes an idle connection that closes gracefully, unless it does by itself. */
  closeIfIdle(): void;
  /** Closes the connection at once. */
  destroy(): void;
}

/** An accepted connection. */
export class Connection implements ReadConnection {
  /** Undefined until its first bytes have arrived. */
  protocol: ConnectionProtocol | undefined;
  requestsInTurn = 0;
  readInTurn = -1;

  /** @param caller identity of its peer, as `identifyCaller` returns it */
  constructor(
    readonly socket: Socket,
    readonly caller: string,
  ) {}
}

/** Interval of the checks of all connections. */
const CHECK_INTERVAL_MS = 1000;

/** New open requests that cause a check before the interval ends: each may leave a response of megabytes unread. */
const REQUESTS_PER_CHECK = 256;

/** Share of a budget that remains in use after something was given up: otherwise the next byte costs another caller. */
const TARGET_SHARE = 0.75;

/** Most connections to check for an idle one per eviction. */
const MAX_EVICTION_SCAN = 64;

/**
 * Keeps what callers occupy within the limits of the process. It counts each resource by caller, and when one is
 * exhausted the caller who holds most of it pays. Without it, these attacks succeed:
 *
 * - **connections**: one caller opens all of them, and keeps everybody else out. The caller with the most loses an idle
 *   one to a newcomer.
 * - **open streams**: sessions open streams by the thousand that wait for an upstream. Further ones are refused.
 * - **pipelined requests**: connections send thousands of requests at once. Further ones stay unread.
 * - **unsent bytes**: callers request large responses, or send bodies to paths that read none, and never read. The
 *   caller with the most bytes loses its largest connections.
 * - **received bytes**: callers begin bodies and do not end them. The caller with the most bytes has its largest
 *   requests refused.
 * - **time to read**: callers read one byte a second. `SendDeadline` closes what makes no progress.
 * - **time of the event loop**: callers ask for what takes long, or for much at once. `FairScheduler` divides it among
 *   them, and a request that waits too long for its turn is refused.
 *
 * What waits for upstreams is limited where operations begin their work.
 */
export class OverloadManager {
  /** Concurrent connections, capped to what the limit of open files allows. */
  readonly maxConnections: number;
  /** Divides the time of the event loop among callers. */
  readonly eventLoop: FairScheduler;
  /** Divides what is read of connections among its turns, until they turn out to be HTTP/1.1. */
  readonly reads: ReadTurns;
  readonly #limits: HttpLimits;
  readonly #scheduler: Scheduler;
  readonly #connectionsByCaller = new Map<string, Set<Connection>>();
  readonly #streams: FairQuota;
  readonly #bodies = new Set<IncomingBody>();
  readonly #cuts: Record<OverloadCause, number> = {
    unsent_bytes: 0,
    response_deadline: 0,
    open_streams: 0,
    received_bytes: 0,
    event_loop: 0,
  };
  #connectionCount = 0;
  #pipelinedRequests = 0;
  #openRequests = 0;
  #checkAt = REQUESTS_PER_CHECK;
  #unsentBytes = 0;
  #receivedBytes = 0;
  #isReducingBodies = false;
  /** Checks all connections, while there are any. */
  #checks: ScheduledJob | undefined;

  constructor(limits: HttpLimits, scheduler: Scheduler, eventLoop: FairScheduler, reads = new ReadTurns()) {
    this.#limits = limits;
    this.eventLoop = eventLoop;
    this.reads = reads;
    this.#scheduler = scheduler;
    this.maxConnections = capToFileDescriptorLimit(limits.connections);
    this.#streams = new FairQuota(() => limits.totalStreams);
    reads.limitBy((caller, requests) => this.#hasRoomFor(caller, requests));
  }

  /**
   * Adds a connection. If all are taken, it closes another one to make room, or else this one and returns false.
   *
   * There is no limit per caller, since a proxy opens thousands of connections. The caller with the most connections
   * loses one: an idle one, oldest first, or, to a newcomer with fewer than half as many, its oldest busy one. So one
   * caller cannot keep others out, and a proxy that serves everybody loses no request.
   */
  tryAddConnection(connection: Connection): boolean {
    const { caller, socket } = connection;
    if (this.#connectionCount >= this.maxConnections) {
      const victim = this.#findVictim(this.#connectionsByCaller.get(caller)?.size ?? 0) ?? connection;
      this.#forget(victim);
      victim.socket.destroy();
      if (victim === connection) return false;
    }
    this.#connectionCount += 1;
    const connections = this.#connectionsByCaller.get(caller) ?? new Set();
    this.#connectionsByCaller.set(caller, connections.add(connection));
    this.reads.add(connection);
    socket.once("close", () => this.#forget(connection));
    this.#checks ??= this.#scheduler.every("check connections", CHECK_INTERVAL_MS, () => this.#checkAll());
    return true;
  }

  *connections(): Generator<Connection, void> {
    for (const connections of this.#connectionsByCaller.values()) yield* connections;
  }

  /** Takes a place for an HTTP/2 stream, and returns the function that releases it; undefined: it has to be refused. */
  tryOpenStream(caller: string): (() => void) | undefined {
    const release = this.#streams.tryAcquire(caller);
    if (release === undefined) this.#cuts.open_streams += 1;
    return release;
  }

  /** Whether a connection may have one more request unanswered. */
  get hasRoomToPipeline(): boolean {
    return this.#pipelinedRequests < this.#limits.totalPipelinedRequests;
  }

  /** Counts unanswered requests over HTTP/1.1 beyond the first of each connection. */
  countPipelined(change: 1 | -1): void {
    this.#pipelinedRequests += change;
  }

  /**
   * Does the first work of a request: at once, or when it is the turn of its caller.
   * @param refuse called instead, with OVERLOADED, if the request has waited too long. Default: it waits as long as it takes
   */
  beginInTurn(context: RequestContext, serve: () => void, refuse?: (error: ServiceError) => void): void {
    const refuseLate = (): void => {
      this.#cuts.event_loop += 1;
      if (!context.isAborted) refuse?.(createTurnError());
    };
    this.eventLoop.begin(
      context,
      () => {
        if (!context.isAborted) serve();
      },
      refuse && refuseLate,
    );
  }

  requestStarted(): void {
    this.#openRequests += 1;
    if (this.#openRequests >= this.#checkAt) this.#checkOutput(performance.now());
  }

  requestEnded(): void {
    this.#openRequests -= 1;
  }

  /** Counts a stream that was closed because its caller did not read it in time. */
  countOverdueStream(): void {
    this.#cuts.response_deadline += 1;
  }

  /**
   * Counts a request body from now on, until it ends.
   * @param refuse answers the request without the remainder of its body, and ends the body
   */
  receiveBody(context: { readonly caller: string }, refuse: () => void): IncomingBody {
    const body = new IncomingBody(context, this, refuse);
    this.#bodies.add(body);
    this.bodyChanged(body.weight);
    return body;
  }

  /** Called when a counted body takes more or fewer bytes. */
  bodyChanged(bytes: number): void {
    this.#receivedBytes += bytes;
    if (this.#receivedBytes <= this.#limits.receivedBytes || this.#isReducingBodies) return;
    this.#isReducingBodies = true;
    // Not while the reader of a body handles its chunk.
    process.nextTick(() => this.#refuseLargestBodies());
  }

  /** Called before the end of a counted body. */
  bodyEnded(body: IncomingBody): void {
    this.#bodies.delete(body);
    this.#receivedBytes -= body.weight;
  }

  getLoad(): OverloadLoad {
    return {
      connections: this.#connectionCount,
      openStreams: this.#streams.heldCount(),
      pipelinedRequests: this.#pipelinedRequests,
      requests: this.#openRequests,
      unsentBytes: this.#unsentBytes,
      receivedBytes: this.#receivedBytes,
      waitingForTurn: this.eventLoop.waitingCount,
      cuts: this.#cuts,
    };
  }

  /**
   * Returns whether a caller may bring requests over HTTP/2: few wait for their turn, or there is room for twice as many, since
   * connections are read beside it that have brought nothing yet.
   */
  #hasRoomFor(caller: string, requests: number): boolean {
    if (this.eventLoop.waitingCount <= MAX_WAITING_REQUESTS) return true;
    return this.#streams.hasCapacityFor(caller, 2 * Math.min(requests, this.#limits.concurrentStreams));
  }

  /** Returns the connection to evict for a newcomer whose caller has `count` connections. */
  #findVictim(count: number): Connection | undefined {
    let candidates = new Set<Connection>();
    for (const connections of this.#connectionsByCaller.values()) {
      if (connections.size > candidates.size) candidates = connections;
    }
    const [oldest] = candidates;
    let remaining = Math.min(candidates.size, MAX_EVICTION_SCAN);
    for (const connection of candidates) {
      if (connection.protocol?.isIdle() ?? true) return connection;
      // Moved to the end, so that the next scan starts with others: these may be busy for hours.
      candidates.delete(connection);
      candidates.add(connection);
      remaining -= 1;
      if (remaining === 0) break;
    }
    return candidates.size > 2 * count ? oldest : undefined;
  }

  #forget(connection: Connection): void {
    const connections = this.#connectionsByCaller.get(connection.caller);
    if (!connections?.delete(connection)) return;
    this.reads.remove(connection);
    this.#connectionCount -= 1;
    if (connections.size === 0) this.#connectionsByCaller.delete(connection.caller);
  }

  /** Checks all connections. Requests that are answered and read at once cost no more than this. */
  #checkAll(): void {
    const now = performance.now();
    for (const { protocol } of this.connections()) protocol?.checkPeer(now);
    this.#checkOutput(now);
    if (this.#connectionCount > 0) return;
    this.#checks?.stop();
    this.#checks = undefined;
  }

  #checkOutput(now: number): void {
    const holdings: Holding<Connection>[] = [];
    this.#unsentBytes = 0;
    for (const connection of this.connections()) {
      const { caller, protocol } = connection;
      if (protocol?.isOverdue(now)) {
        this.#close(connection, "response_deadline");
        continue;
      }
      const bytes = protocol?.countBytes() ?? 0;
      if (bytes === 0) continue;
      holdings.push({ caller, item: connection, bytes });
      this.#unsentBytes += bytes;
    }
    if (this.#unsentBytes > this.#limits.unsentBytes) this.#closeLargest(holdings);
    this.#checkAt = this.#openRequests + REQUESTS_PER_CHECK;
  }

  #closeLargest(holdings: readonly Holding<Connection>[]): void {
    for (const { item: connection, bytes } of takeLargestFirst(holdings)) {
      if (this.#unsentBytes <= this.#limits.unsentBytes * TARGET_SHARE) return;
      this.#unsentBytes -= bytes;
      this.#close(connection, "unsent_bytes");
    }
  }

  #close({ socket }: Connection, cause: OverloadCause): void {
    this.#cuts[cause] += 1;
    socket.destroy();
  }

  #refuseLargestBodies(): void {
    const holdings = Array.from(this.#bodies, (body) => ({ caller: body.caller, item: body, bytes: body.weight }));
    for (const { item: body } of takeLargestFirst(holdings)) {
      if (this.#receivedBytes <= this.#limits.receivedBytes * TARGET_SHARE) break;
      if (body.weight === 0) continue;
      this.#cuts.received_bytes += 1;
      body.giveUp();
    }
    this.#isReducingBodies = false;
  }
}

function createTurnError(): ServiceError {
  return new ServiceError("OVERLOADED", "this address asks for more than there is time for here", {
    retryAfterSeconds: 1,
  });
}

/** Memory that a caller holds. */
interface Holding<T> {
  readonly caller: string;
  readonly item: T;
  readonly bytes: number;
}

/**
 * Yields what to give up when a budget is exceeded, until its reader stops: the largest item of the caller that holds
 * most then, so that a caller loses nothing while another holds more.
 */
function* takeLargestFirst<T>(holdings: readonly Holding<T>[]): Generator<Holding<T>, void> {
  const byCaller = new Map<string, { total: number; readonly held: Holding<T>[] }>();
  for (const holding of holdings) {
    const holder = byCaller.get(holding.caller) ?? { total: 0, held: [] };
    byCaller.set(holding.caller, holder);
    holder.total += holding.bytes;
    holder.held.push(holding);
  }
  for (const { held } of byCaller.values()) held.sort((a, b) => a.bytes - b.bytes);
  for (;;) {
    let largest: { total: number; readonly held: Holding<T>[] } | undefined;
    for (const holder of byCaller.values()) if (holder.total > (largest?.total ?? 0)) largest = holder;
    const holding = largest?.held.pop();
    if (largest === undefined || holding === undefined) return;
    largest.total -= holding.bytes;
    yield holding;
  }
}
