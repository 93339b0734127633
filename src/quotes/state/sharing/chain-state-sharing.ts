import type { UsdcSwapPool } from "../../../hop/usdc-swap-pools.js";
import { parseList } from "../../../shared-state/plain-values.js";
import type { SharedState } from "../../../shared-state/shared-state.js";
import { type ChainState, type ChainStateValues, coversReadSet, createChainState } from "../chain-state.js";
import { type ChainStateEntry, findStaleState } from "../chain-state-entry.js";
import type { ReadSet } from "../read-set.js";
import type { UniswapTickWindow } from "../uniswap-tick-window.js";
import { parseChainState, printChainState } from "./chain-state-codec.js";
import { type ChainStateDemand, parseDemands, printDemands } from "./chain-state-demand.js";

/** Chain state that one of several processes reads for all. */
export interface ChainStateSharing {
  /** Returns whether this process reads the chain for all. */
  isReader(): boolean;
  /** Asks the reader for newer state of an entry. Resolves to undefined if this process has to read; never rejects. */
  request(entry: ChainStateEntry): Promise<ChainState | undefined>;
  /** Creates the state of a read of this process, and hands it to the others. */
  publish(values: ChainStateValues): ChainState;
}

/** What a cache needs to share its state. */
export interface ChainStateSharingOptions {
  readonly sharedState: SharedState;
  /** Identifies the chain among all networks. */
  readonly topic: string;
  readonly getTickWindow: (pool: UsdcSwapPool) => UniswapTickWindow;
  /** Observes every state that another process has read. */
  readonly onReceived?: ((state: ChainState) => void) | undefined;
}

/** The cache that shares its state. */
export interface SharingCache {
  readonly slug: string;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Stores a state that another process has read, in the entries that it covers. */
  store(received: ReceivedState): void;
  /** Returns the state that another process asks for; undefined when it cannot be read. */
  read(demand: ChainStateDemand): Promise<ChainState | undefined>;
  /** Called when this process becomes the reader. */
  refresh(): void;
}

export interface ReceivedState {
  readonly state: ChainState;
  readonly values: ChainStateValues;
}

/** The requests of one event-loop turn, which are sent together. */
interface RequestBatch {
  readonly entries: Set<ChainStateEntry>;
  readonly received: Promise<readonly ReceivedState[]>;
}

/** Largest age of a state that is of use to any policy. */
const MAX_RECEIVED_AGE_MS = 10 * 60_000;
/** By how much the clock of a chain may be ahead of the reader's. */
const MAX_BLOCK_AHEAD_SECONDS = 3_600;
/** How long the reader may take while there is usable state: endpoints that are slow should not be asked twice. */
export const PATIENT_TIMEOUT_MS = 5_000;

export function createChainStateSharing(
  { sharedState, topic: name, getTickWindow, onReceived }: ChainStateSharingOptions,
  cache: SharingCache,
): ChainStateSharing {
  const { clock } = sharedState;
  const valuesOf = new WeakMap<ChainState, ChainStateValues>();
  let openBatch: RequestBatch | undefined;
  /** Also of use to entries that do not exist yet. */
  let lastReceived: ReceivedState | undefined;

  const topic = sharedState.join(name, {
    onPublished(text) {
      cache.store(receive(JSON.parse(text)));
    },
    async onRequest(text) {
      const states = await Promise.all(parseDemands(text, clock, getTickWindow).map(cache.read));
      const distinct = new Set(states.flatMap((state) => state ?? []));
      const known = [...distinct].flatMap((state) => valuesOf.get(state) ?? []);
      return `[${known.map((values) => printChainState(values, clock)).join(",")}]`;
    },
    onBecomeReader: cache.refresh,
  });

  /** @throws TypeError for anything but chain state of the last minutes */
  function receive(json: unknown): ReceivedState {
    const parsed = parseChainState(json, clock);
    assertPlausible(parsed, cache.now());
    // The clocks of different machines differ: a time in the future would keep newer state out.
    const values = { ...parsed, readAt: Math.min(parsed.readAt, cache.now()) };
    const state = create(values);
    onReceived?.(state);
    const received = { state, values };
    if (lastReceived === undefined || values.readAt > lastReceived.values.readAt) lastReceived = received;
    return received;
  }

  function create(values: ChainStateValues): ChainState {
    const state = createChainState(values, cache.slug);
    valuesOf.set(state, values);
    return state;
  }

  function joinBatch(entry: ChainStateEntry): RequestBatch {
    if (openBatch === undefined) {
      const entries = new Set<ChainStateEntry>();
      openBatch = { entries, received: sendLater(entries) };
    }
    openBatch.entries.add(entry);
    return openBatch;
  }

  async function sendLater(entries: ReadonlySet<ChainStateEntry>): Promise<readonly ReceivedState[]> {
    // Lets the other requests of this event-loop turn join.
    await Promise.resolve();
    openBatch = undefined;
    const demands = [...entries].map(({ state, ...entry }) => ({ ...entry, newerThan: state?.readAt }));
    const isPatient = [...entries].every((entry) => findStaleState(entry, cache.now() + PATIENT_TIMEOUT_MS));
    const reply = await topic.request(printDemands(demands, clock), isPatient ? PATIENT_TIMEOUT_MS : undefined);
    if (reply === undefined) return [];
    try {
      return parseList(JSON.parse(reply)).map(receive);
    } catch {
      return [];
    }
  }

  return {
    isReader: topic.isReader,
    async request(entry) {
      if (topic.isReader()) return undefined;
      const newerThan = entry.state?.readAt ?? Number.NEGATIVE_INFINITY;
      const { maxAgeMs, maxStaleMs } = entry.refreshPolicy;
      // An entry that is new, since this process or the route's use has just begun.
      const last = entry.state === undefined ? lastReceived : undefined;
      if (last !== undefined && isNewFor(entry.readSet, cache.now() - maxAgeMs)(last)) return last.state;
      const received = await joinBatch(entry).received;
      const minReadAt = Math.max(newerThan, cache.now() - maxStaleMs);
      const replied = received.find(isNewFor(entry.readSet, minReadAt))?.state;
      // Without a reply, a state may have been published meanwhile.
      return replied ?? (entry.state !== undefined && entry.state.readAt > newerThan ? entry.state : undefined);
    },
    publish(values) {
      topic.publish(printChainState(values, clock));
      return create(values);
    },
  };
}

/** @throws TypeError for a state that no reader of this chain hands on */
function assertPlausible({ block, readAt, readAtUnixSeconds }: ChainStateValues, now: number): void {
  const isPlausible =
    now - readAt <= MAX_RECEIVED_AGE_MS &&
    block.number >= 0n &&
    block.number <= Number.MAX_SAFE_INTEGER &&
    block.timeSeconds >= 0n &&
    block.timeSeconds <= readAtUnixSeconds + MAX_BLOCK_AHEAD_SECONDS;
  if (!isPlausible) throw new TypeError("not a state of the last minutes");
}

function isNewFor(readSet: ReadSet, newerThan: number): (received: ReceivedState) => boolean {
  return ({ values }) => values.readAt > newerThan && coversReadSet(values, readSet);
}
