/** What a message of a watch says, as far as it tells states apart. */
export interface WatchState {
  readonly transactionHash: string;
  readonly state: string;
}

/** What one caller has received. */
export interface WatchRecord {
  readonly states: WatchState[];
  /** Token of the last message. */
  token: string;
  /** How often it has resumed. */
  resumptions: number;
  /** Attempts to open a stream that were refused or failed, with their causes. */
  readonly failures: string[];
}

export function createWatchRecord(): WatchRecord {
  return { states: [], token: "", resumptions: 0, failures: [] };
}

export interface WatchFaults {
  readonly lost: number;
  readonly repeated: number;
}

/**
 * Counts what is wrong with a record.
 * @param expected the states that each transaction must have been told to have, in order
 */
export function countFaults({ states }: WatchRecord, expected: ReadonlyMap<string, readonly string[]>): WatchFaults {
  let lost = 0;
  let repeated = 0;
  for (const [hash, wanted] of expected) {
    const told = states.filter(({ transactionHash }) => transactionHash === hash).map(({ state }) => state);
    let next = 0;
    for (const state of told) {
      if (state === wanted[next]) next++;
      else repeated++;
    }
    lost += wanted.length - next;
  }
  return { lost, repeated };
}
