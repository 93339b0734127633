import type { ExchangeError } from "../../resilience/fetch-json.js";
import { type BlockRange, type ChainClient, resultOf, toQuantity } from "../chain-client.js";
import { areLogsOf } from "../json-rpc/parse-results.js";
import { CallRefused } from "../json-rpc/rpc-codec.js";
import type { Member, Reader } from "./hedged-requests.js";

export interface LogReaderOptions {
  readonly members: readonly Member[];
  /** Whether an endpoint is as good as it should be. */
  readonly isWell: (member: Member) => boolean;
  readonly read: Reader;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** What an endpoint was found to take at most, and until when that is believed, in milliseconds on the steady clock. */
interface WidthLimit {
  readonly blocks: number;
  readonly until: number;
}

/** What an endpoint that refuses more, and does not say how much it takes, is asked next, in blocks. */
export const firstGuess = 10_000;
/** Fewer blocks are not tried: who refuses these does not mean their number. */
export const fewestBlocks = 10;
/** For how long a limit is believed: it may have been a bad moment, or have been lifted. */
const limitMs = 10 * 60_000;
/** The same where the width was not what was meant. */
const uncertainMs = 30_000;
/** HTTP statuses for a question or an answer that is too long, or took too long. */
const tooMuch: ReadonlySet<number | undefined> = new Set([400, 408, 413, 504, 524]);

/** Searches logs over endpoints each of which takes another number of blocks at once, which shows when it refuses more. */
export function createLogReader({ members, isWell, read, now }: LogReaderOptions): ChainClient["logs"] {
  const limits = new Map<Member, WidthLimit>();

  function mostOf(member: Member): number {
    const limit = limits.get(member);
    return limit === undefined || now() >= limit.until ? Number.POSITIVE_INFINITY : limit.blocks;
  }

  /** Learns from a refusal. @param named what the refusal says to be the most */
  function narrow(member: Member, width: number, named: number | undefined): void {
    const last = limits.get(member);
    const half = Math.max(Math.min(Math.floor(width / 2), firstGuess), fewestBlocks);
    // What was found before is likely still so. Twice as much, in order that one bad moment does not count for ever.
    const isKnown = last !== undefined && last.blocks > fewestBlocks && last.blocks < width;
    const isBelieved = isKnown && now() < last.until;
    const guess = isKnown ? Math.min(last.blocks * (isBelieved ? 1 : 2), Math.max(half, last.blocks)) : half;
    const blocks = named ?? guess;
    limits.set(member, { blocks: isBelieved ? Math.min(blocks, last.blocks) : blocks, until: now() + limitMs });
  }

  return async (filter, range, newestFirst, signal) => {
    /** Endpoints that failed, and not because of the width. */
    const failed = new Set<Member>();
    let failure: unknown = new Error("a chain without endpoints");
    for (;;) {
      const left = members.filter((member) => !failed.has(member));
      if (left.length === 0) throw failure;
      // Rather two searches of an endpoint that is well than one of another.
      const well = left.filter(isWell);
      const asked = cut(range, Math.max(...(well.length > 0 ? well : left).map(mostOf)), newestFirst);
      if (asked === undefined) return undefined;
      const width = widthOf(asked);
      const fitting = new Set(left.filter((member) => mostOf(member) >= width));
      let wasAsked = false;
      try {
        const call = {
          method: "eth_getLogs",
          params: [{ ...filter, ...inQuantities(asked) }],
          // Who gives what was not asked for has not searched for what was.
          isAnswer: (found: unknown) => areLogsOf(found, filter, asked),
        };
        const [outcome] = await read([call], signal, {
          mayAsk: (member) => fitting.has(member),
          isTooWide(member, error, isLate) {
            wasAsked = true;
            const isRefusal = isAboutWidth(error);
            if (isRefusal && width <= fewestBlocks) {
              limits.set(member, { blocks: fewestBlocks, until: now() + uncertainMs });
            } else if (isRefusal || isLate) {
              narrow(member, width, isRefusal ? namedBy(error, asked) : undefined);
              // Who is late with little is late with everything.
              if (isRefusal || width > firstGuess) return true;
            }
            failed.add(member);
            return false;
          },
        });
        return { result: resultOf(outcome), range: asked };
      } catch (error) {
        failure = error;
        // They rest, or nobody waits any more.
        if (!wasAsked) for (const member of fitting) failed.add(member);
      }
    }
  };
}

/** The part of a range that has at most so many blocks; undefined when it is not known where that ends. */
function cut(range: BlockRange, blocks: number, newestFirst: boolean): BlockRange | undefined {
  const { from, to } = range;
  if (widthOf(range) <= blocks) return range;
  if (to === Number.POSITIVE_INFINITY) return undefined;
  return newestFirst ? { from: to - blocks + 1, to } : { from, to: from + blocks - 1 };
}

function widthOf({ from, to }: BlockRange): number {
  return to - from + 1;
}

function inQuantities({ from, to }: BlockRange) {
  return { fromBlock: toQuantity(from), toBlock: to === Number.POSITIVE_INFINITY ? "latest" : toQuantity(to) };
}

export function isAboutWidth(error: ExchangeError): boolean {
  if (error instanceof CallRefused) return error.refusal?.about === undefined;
  return tooMuch.has(error.status) || isTooLong(error);
}

/** Whether an answer had more bytes than are read, which two parts watch over: the HTTP client, and the exchange. */
function isTooLong({ message, cause }: ExchangeError): boolean {
  const { code } = (cause ?? {}) as { code?: unknown };
  return code === "UND_ERR_RES_EXCEEDED_MAX_SIZE" || message.startsWith("answered more than");
}

/** The most blocks that a refusal names, where it plausibly does. */
export function namedBy(error: ExchangeError, asked: BlockRange): number | undefined {
  if (!(error instanceof CallRefused)) return undefined;
  const numbers = (error.refusal?.numbers ?? []).filter(
    (each) => each >= fewestBlocks && each < widthOf(asked) && each !== asked.from && each !== asked.to,
  );
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}
