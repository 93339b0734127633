/** Runs a piece of work in a later turn of the event loop, in order. */
export type FairScheduler = (work: () => unknown) => void;

/** How long the scheduler works per turn of the event loop. Between turns other connections are served. */
const MAX_TURN_MS = 5;

/** Turns in a row that the scheduler leaves to new connections: Node.js accepts one per turn. */
const MAX_ACCEPTING_TURNS = 32;

/**
 * Creates a first-come, first-served queue of short pieces of work. A connection that queues its next piece from within
 * a piece gets its turn after all others: no connection holds up the process, however much it sends at once.
 * @param countAccepted returns the number of connections accepted so far
 * @param now returns the time in milliseconds. Default: a monotonic clock
 */
export function createFairScheduler(countAccepted: () => number, now = () => performance.now()): FairScheduler {
  let queue: (() => unknown)[] = [];
  let accepted = 0;
  let acceptingTurns = 0;

  function isAccepting(): boolean {
    const isNew = countAccepted() !== accepted;
    accepted = countAccepted();
    acceptingTurns = isNew && acceptingTurns < MAX_ACCEPTING_TURNS ? acceptingTurns + 1 : 0;
    return acceptingTurns > 0;
  }

  function runTurn(): void {
    if (!isAccepting()) {
      // Pieces that are queued meanwhile have to wait for the next turn.
      const turnEnd = queue.length;
      const deadline = now() + MAX_TURN_MS;
      let next = 0;
      do {
        queue[next]?.();
        next += 1;
      } while (next < turnEnd && now() < deadline);
      queue = queue.slice(next);
    }
    if (queue.length > 0) setImmediate(runTurn);
  }

  return (work) => {
    queue.push(work);
    if (queue.length === 1) setImmediate(runTurn);
  };
}

/** Creates a queue that runs one piece of work per turn of the event loop, in order. */
export function createTurnQueue(): FairScheduler {
  const queue: (() => unknown)[] = [];
  function runTurn(): void {
    queue.shift()?.();
    if (queue.length > 0) setImmediate(runTurn);
  }
  return (work) => {
    queue.push(work);
    if (queue.length === 1) setImmediate(runTurn);
  };
}
