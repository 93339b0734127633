import { createAbortScope } from "../../resilience/abort-scope.js";
import type { ReadKind } from "./rules/canonical-answer.js";
import type { Voter } from "./voter.js";

/** Asks endpoints again that contradict others, before they count as outvoted. */
export interface Confirmations {
  /**
   * Asks once more after a while, unless the endpoint is already suspected. Several nodes may share one address, and one of
   * them may be a block behind: that is no lie, and is over by then.
   * @param confirm returns whether the endpoint still contradicts the others; a rejection proves nothing
   */
  suspect(voter: Voter, read: ReadKind, confirm: (signal: AbortSignal) => Promise<boolean>): void;
}

export interface ConfirmationsOptions {
  readonly closing: AbortSignal;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

const CONFIRM_AFTER_MS = 1_000;
const CONFIRM_TIMEOUT_MS = 9_000;

export function createConfirmations({ closing, sleep }: ConfirmationsOptions): Confirmations {
  const suspected = new Set<Voter>();

  async function confirmLater(
    voter: Voter,
    read: ReadKind,
    confirm: (signal: AbortSignal) => Promise<boolean>,
  ): Promise<void> {
    await sleep(CONFIRM_AFTER_MS, closing);
    if (closing.aborted) return;
    const scope = createAbortScope(closing, CONFIRM_TIMEOUT_MS);
    try {
      if (await confirm(scope.signal)) voter.recordOutvoted(read);
    } finally {
      scope.cancel();
    }
  }

  return {
    suspect(voter, read, confirm) {
      if (suspected.has(voter) || voter.isOutvoted()) return;
      suspected.add(voter);
      confirmLater(voter, read, confirm)
        .catch(() => {})
        .finally(() => suspected.delete(voter));
    },
  };
}
