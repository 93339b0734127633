/** Time that a caller has when he comes: who asks for little at a time is not behind a hundred others who never stop. */
const FIRST_QUANTUM_MS = 2;

/** Whom work is done for: a request, for example. */
export interface WorkOwner {
  /** Identity of the caller. Rarely read while there is nothing to divide. */
  readonly caller: string;
  /** Time that it has taken in turns of the scheduler, and is expected to take, in milliseconds. Default: none. */
  takenMs?: number;
}

/** Work that waits for its turn. */
export interface WaitingPiece {
  readonly owner: WorkOwner;
  /** Returns true if there is more to do. */
  readonly work: () => unknown;
  readonly since: number;
}

/** What waits of one caller in one class. */
export class CallerQueue {
  /** Of requests that have had their first turn. It comes first: work in progress holds memory. */
  readonly begun = new Fifo<WaitingPiece>();
  readonly waiting = new Fifo<WaitingPiece>();
  /** Time that is left to him; negative: what he owes. */
  creditMs = FIRST_QUANTUM_MS;

  constructor(readonly caller: string) {}

  get size(): number {
    return this.begun.size + this.waiting.size;
  }
}

/** The callers of one class of work, who take turns. */
export class CallerRing {
  /** Callers who have work waiting, or debts while others have. */
  readonly #byCaller = new Map<string, CallerQueue>();
  /** Those who have had no turn yet take turns with the others: a flood of new ones delays nobody else. */
  readonly #fresh = new Fifo<CallerQueue>();
  readonly #others = new Fifo<CallerQueue>();
  #wasFresh = false;
  /** Number of pieces that wait of all of them. */
  size = 0;
  /** Time that longer requests have not had of their share since both wait; negative: they have had more. */
  owedMs = 0;

  /** @param quantumMs time of a turn */
  constructor(readonly quantumMs: number) {}

  /** Returns the queue of a caller. The regulars have their first turn among the others. */
  getQueue(caller: string, regulars: ReadonlySet<string>): CallerQueue {
    let queue = this.#byCaller.get(caller);
    if (queue === undefined) {
      queue = new CallerQueue(caller);
      this.#byCaller.set(caller, queue);
      (regulars.has(caller) ? this.#others : this.#fresh).push(queue);
    }
    return queue;
  }

  /** Takes out the queue whose turn it is. Visits each caller once, up to the first who has work and no debts. */
  take(): CallerQueue | undefined {
    this.#wasFresh = !this.#wasFresh && this.#fresh.size > 0;
    if (this.#wasFresh) return this.#fresh.shift();
    for (let left = this.#others.size; left > 0; left -= 1) {
      const queue = this.#others.shift() as CallerQueue;
      if (queue.creditMs <= 0) queue.creditMs += this.quantumMs;
      if (queue.creditMs <= 0) this.#others.push(queue);
      else if (queue.size > 0) return queue;
      else this.#byCaller.delete(queue.caller);
    }
    return undefined;
  }

  /** Puts the queue back that was taken. */
  putBack(queue: CallerQueue): void {
    this.#others.push(queue);
  }

  /** Forgets what the callers have taken. Nothing of them may wait. */
  forgetCallers(): void {
    if (this.#byCaller.size === 0) return;
    this.#byCaller.clear();
    this.#others.clear();
  }
}

/** A queue whose ends take the same time however long it is. */
class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (2 * this.#head > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Puts the item back that was taken last. */
  unshift(item: T): void {
    if (this.#head > 0) {
      this.#head -= 1;
      this.#items[this.#head] = item;
    } else this.#items.unshift(item);
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
