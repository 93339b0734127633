import type { Confirmations } from "./confirmations.js";
import type { HeadBoard } from "./head-board.js";
import { listUsable, type Voter } from "./voter.js";

/** How the votes about one read ended: all agreed; enough agreed, others not; too few agreed or responded. */
export type ReadOutcome = "agreed" | "disputed" | "undecided";

/** What the readers of one chain share. */
export interface QuorumDeps {
  readonly slug: string;
  readonly voters: readonly Voter[];
  /** Number of endpoints that have to agree. */
  readonly needed: number;
  /** Whether all endpoints are asked, and not only as many as have to agree. */
  readonly asksAll: boolean;
  readonly board: HeadBoard;
  readonly confirmations: Confirmations;
  readonly observer: { readonly onRead: (outcome: ReadOutcome) => void };
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Returns the voters that may be asked about a block, best first: an endpoint that does not have it yet would deny what
 * others have seen.
 * @param requiredHead number of the block; undefined: any head will do
 */
export function listEligible({ voters, board }: QuorumDeps, requiredHead: number | undefined): readonly Voter[] {
  const hasBlock = (voter: Voter): boolean =>
    requiredHead === undefined || (board.getHead(voter)?.number ?? -1) >= requiredHead;
  const eligible = listUsable(voters).filter(hasBlock);
  return [...eligible.filter((voter) => !board.isSilent(voter)), ...eligible.filter(board.isSilent)];
}
