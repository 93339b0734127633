import { type CallerQueue, CallerRing, type WaitingPiece, type WorkOwner } from "./caller-ring.js";
import { createTurnClock, readTurn } from "./clock.js";

/**
 * Time of each turn of the event loop that waiting work takes. Between turns, sockets are read. Where that takes long, as while
 * thousands of HTTP/2 streams begin, waiting work takes a fifth of all time instead, up to a limit.
 */
const TURN_MS = 5;
const TURN_TO_OTHER_TIME = 1 / 4;
const MAX_TURN_MS = 50;

/** Pieces of work that begin at once in each turn of the event loop while nothing waits. */
const MAX_IMMEDIATE = 8;

/** Largest debt: what a caller took longer ago than this is forgotten. */
const MAX_DEBT_MS = 1_000;

/**
 * Classes of requests. A quote takes 0.3 ms, a batch of a hundred 2 to 15 ms.
 * - `limitMs`: time that they have taken at most
 * - `quantumMs`: time of a caller before the next one has its turn, unless one piece takes longer: he owes the rest
 * - `chargeMs`: time that he owes for one piece at most. A short one takes longer only while the process itself stands still, as
 *   for garbage collection: forty milliseconds of it would be four hundred turns of everybody else.
 */
const CLASSES = [
  { limitMs: 1, quantumMs: 0.1, chargeMs: 4 },
  { limitMs: 8, quantumMs: 2, chargeMs: MAX_DEBT_MS },
  { limitMs: Number.POSITIVE_INFINITY, quantumMs: 2, chargeMs: MAX_DEBT_MS },
];

/** Share of the time of each class that longer requests have while they wait. */
const LONGER_SHARE = 0.2;

/** One in so many requests that begin at once shows who asks in quiet times; how many callers are remembered of them. */
const REGULAR_SAMPLE = 16;
const MAX_REGULARS = 1_000;

/** Longest wait for the first turn of a request. A process that gets no time from a busy machine makes everybody wait. */
const MAX_WAIT_MS = 5_000;

/** Turns in a row that the scheduler leaves to new connections: Node.js accepts one per turn. */
const MAX_ACCEPTING_TURNS = 32;

/** Returns the class of a request: an index of CLASSES. */
function classify({ takenMs = 0 }: WorkOwner): number {
  return CLASSES.findIndex(({ limitMs }) => takenMs <= limitMs);
}

/**
 * Divides the time of the event loop among callers, whatever they ask for: the start of requests, the parsing of
 * bodies, the steps of batches, responses. As long as little is to be done, everything is done at once. Otherwise it
 * waits for later turns of the event loop, and callers take turns of the same time (deficit round robin), those who
 * have just come first (RFC 8290 4.2), callers of quiet times before a flood of new ones. So one caller gets all the time
 * that nobody else wants, and no more.
 *
 * Requests that have taken little go first, up to four fifths of the time while longer ones wait (multi-level feedback):
 * a hundred callers of batches leave more to a caller of quotes than one part of a hundred and one. Callers take turns in
 * each class: who asks for quotes and for batches has a share of both, and his quotes do not wait for his batches.
 *
 * Without it, a caller who sends what takes long, or many requests at once, holds up the process for seconds: Node.js
 * begins all that it has read before it serves anybody else, the liveness probe included.
 */
export class FairScheduler {
  readonly #turnMs: number;
  readonly #now: () => number;
  readonly #readTurnTime: () => number;
  /** What waits, by the class of its request. */
  readonly #rings = CLASSES.map(({ quantumMs }) => new CallerRing(quantumMs));
  /** Callers of quiet times, the least recent first. They do not wait behind a flood of new ones. */
  readonly #regulars = new Set<string>();
  #begunAtOnce = 0;
  /** Number of waiting pieces. */
  #size = 0;
  #isScheduled = false;
  /** The caller whose piece is being done in his turn, the class that has the turn, and whether the piece waited too long. */
  #current: CallerQueue | undefined;
  #currentClass = 0;
  #isLate = false;
  /** The turn of the event loop in which work last began at once, and how much. */
  #turn = -1;
  #immediate = 0;
  #turnEndsAt = 0;
  /** When waiting work last ended. */
  #workedUntil = Number.POSITIVE_INFINITY;
  #accepted = 0;
  #acceptingTurns = 0;

  constructor(
    options: {
      /** How long to work per turn of the event loop; at least one piece is done. Default: 5 ms. */
      readonly turnMs?: number;
      /** Milliseconds on a monotonic clock that goes on within a turn. Default: that of the process. */
      readonly now?: () => number;
    } = {},
  ) {
    this.#turnMs = options.turnMs ?? TURN_MS;
    this.#now = options.now ?? (() => performance.now());
    this.#readTurnTime = options.now ?? createTurnClock(this.#now);
  }

  /** Number of pieces of work that wait. */
  get waitingCount(): number {
    return this.#size;
  }

  /** Leaves turns to connections that wait to be accepted, of which one has just been. */
  noteAccepted(): void {
    this.#accepted += 1;
  }

  /**
   * Does the first work of a request: at once, or in the turn of its caller.
   * @param refuse called instead if the request has waited too long for its turn. Default: it waits as long as it takes
   */
  begin(owner: WorkOwner, work: () => void, refuse: () => void = work): void {
    if (!this.#mayRunAtOnce(owner)) this.#enqueue(owner, () => (this.#isLate ? refuse() : work()), false);
    else if (this.#isLate) refuse();
    else {
      if (this.#current === undefined) this.#sampleRegular(owner);
      work();
    }
  }

  /** Does more work for a request that has begun: at once, or in the turn of its caller, before requests that have not. */
  continue(owner: WorkOwner, work: () => void): void {
    if (this.#mayRunAtOnce(owner)) work();
    else this.#enqueue(owner, () => void work(), true);
  }

  /**
   * Does work in a later turn of the event loop.
   * @param hasBegun whether it comes before requests of its caller that have not begun. Default: false
   */
  schedule(owner: WorkOwner, work: () => void, hasBegun = false): void {
    this.#enqueue(owner, () => void work(), hasBegun);
  }

  /** Calls `step` until it returns false: as long as this turn has time and nobody waits, and then in later turns. */
  runSteps(owner: WorkOwner, step: () => boolean): void {
    while (this.#size === 0 && this.#hasTime()) if (!step()) return;
    this.#enqueue(owner, step, true);
  }

  /**
   * Ends the turn of the event loop in which waiting work is being done: other work begins in the next one. For work that goes
   * on in promises, which run after the turn, so that its time is not known.
   */
  endTurn(): void {
    if (this.#current !== undefined) this.#turnEndsAt = Number.NEGATIVE_INFINITY;
  }

  #mayRunAtOnce(owner: WorkOwner): boolean {
    if (this.#current !== undefined)
      return owner.caller === this.#current.caller && classify(owner) <= this.#currentClass;
    if (this.#size > 0) return false;
    const turn = readTurn();
    if (turn !== this.#turn) this.#startTurn(turn);
    this.#immediate += 1;
    return this.#immediate <= MAX_IMMEDIATE;
  }

  /** Remembers the caller of some requests. */
  #sampleRegular(owner: WorkOwner): void {
    this.#begunAtOnce += 1;
    if (this.#begunAtOnce % REGULAR_SAMPLE > 0) return;
    const { caller } = owner;
    this.#regulars.delete(caller);
    this.#regulars.add(caller);
    const [oldest] = this.#regulars;
    if (this.#regulars.size > MAX_REGULARS && oldest !== undefined) this.#regulars.delete(oldest);
  }

  #hasTime(): boolean {
    const turn = readTurn();
    if (this.#current === undefined && turn !== this.#turn) this.#startTurn(turn);
    const now = this.#now();
    if (this.#turnEndsAt === 0) this.#turnEndsAt = now + this.#turnMs;
    return now < this.#turnEndsAt;
  }

  /** Begins to count what is done at once in a turn of the event loop; the clock is read only if there are steps. */
  #startTurn(turn: number): void {
    this.#turn = turn;
    this.#immediate = 0;
    this.#turnEndsAt = 0;
  }

  #enqueue(owner: WorkOwner, work: WaitingPiece["work"], hasBegun: boolean): void {
    this.#add({ owner, work, since: this.#readTurnTime() }, hasBegun);
    this.#scheduleTurn();
  }

  /** Adds a piece to what waits of its caller in the class of its request. */
  #add(piece: WaitingPiece, hasBegun: boolean): void {
    const sizeClass = classify(piece.owner);
    const queue = (this.#rings[sizeClass] as CallerRing).getQueue(piece.owner.caller, this.#regulars);
    (hasBegun ? queue.begun : queue.waiting).push(piece);
    this.#changeSize(sizeClass, 1);
  }

  #changeSize(sizeClass: number, change: number): void {
    (this.#rings[sizeClass] as CallerRing).size += change;
    this.#size += change;
  }

  #scheduleTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#runTurn());
  }

  #runTurn(): void {
    this.#isScheduled = false;
    if (this.#isAccepting()) {
      this.#scheduleTurn();
      return;
    }
    let now = this.#now();
    this.#turnEndsAt =
      now + Math.max(this.#turnMs, Math.min((now - this.#workedUntil) * TURN_TO_OTHER_TIME, MAX_TURN_MS));
    try {
      do {
        const queue = this.#takeTurn();
        if (queue === undefined) break;
        now = this.#serve(queue, now);
      } while (now < this.#turnEndsAt);
    } finally {
      this.#current = undefined;
      this.#isLate = false;
      // Where nothing waits, the next turn does not follow this one.
      this.#workedUntil = this.#size > 0 ? now : Number.POSITIVE_INFINITY;
      if (this.#size > 0) this.#scheduleTurn();
    }
  }

  /** Returns the queue of the caller whose turn it is; undefined if nothing waits. */
  #takeTurn(): CallerQueue | undefined {
    while (this.#size > 0) {
      this.#currentClass = this.#chooseClass();
      const queue = (this.#rings[this.#currentClass] as CallerRing).take();
      if (queue !== undefined) return queue;
    }
    return undefined;
  }

  /** Returns the first class that has work and owes longer requests nothing, or else the last that has work. */
  #chooseClass(): number {
    let left = this.#size;
    return this.#rings.findIndex(({ size, owedMs }) => {
      left -= size;
      return size > 0 && (left === 0 || owedMs <= 0);
    });
  }

  /**
   * Does pieces of one caller for as long as his turn lasts. The others have theirs before the rest of his first credit: a
   * thousand who have just come would take seconds.
   */
  #serve(queue: CallerQueue, began: number): number {
    const ring = this.#rings[this.#currentClass] as CallerRing;
    const endsAt = began + ring.quantumMs;
    let now = began;
    this.#current = queue;
    try {
      do now = this.#runPiece(queue, now);
      while (now < Math.min(endsAt, this.#turnEndsAt) && queue.creditMs > 0 && queue.size > 0);
    } finally {
      ring.putBack(queue);
    }
    this.#settleTurn(now - began);
    return now;
  }

  /** Does the next piece of a caller and returns the time afterwards. */
  #runPiece(queue: CallerQueue, now: number): number {
    const { begun, waiting } = queue;
    const list = begun.size > 0 ? begun : waiting;
    const piece = list.shift() as WaitingPiece;
    this.#changeSize(this.#currentClass, -1);
    this.#isLate = list === waiting && now - piece.since > MAX_WAIT_MS;
    const hasMore = piece.work() === true;
    const end = this.#now();
    const tookMs = end - now;
    piece.owner.takenMs = (piece.owner.takenMs ?? 0) + tookMs;
    const { chargeMs } = CLASSES[this.#currentClass] as (typeof CLASSES)[number];
    queue.creditMs = Math.max(queue.creditMs - Math.min(tookMs, chargeMs), -MAX_DEBT_MS);
    if (hasMore && classify(piece.owner) === this.#currentClass) {
      list.unshift(piece);
      this.#changeSize(this.#currentClass, 1);
    } else if (hasMore) this.#add(piece, true);
    return end;
  }

  /**
   * Adds the time of a turn to what each class owes longer requests, as long as both wait. Where neither waits, nobody else
   * wants the time: what the callers of the class have taken is forgotten.
   */
  #settleTurn(tookMs: number): void {
    let left = this.#size;
    for (const [sizeClass, ring] of this.#rings.entries()) {
      left -= ring.size;
      if (ring.size === 0 && left === 0) ring.forgetCallers();
      if (ring.size === 0 || left === 0) ring.owedMs = 0;
      else if (sizeClass <= this.#currentClass)
        ring.owedMs += LONGER_SHARE * tookMs - (sizeClass < this.#currentClass ? tookMs : 0);
    }
  }

  #isAccepting(): boolean {
    const isNew = this.#accepted > 0;
    this.#accepted = 0;
    this.#acceptingTurns = isNew && this.#acceptingTurns < MAX_ACCEPTING_TURNS ? this.#acceptingTurns + 1 : 0;
    return this.#acceptingTurns > 0;
  }
}
