import { type Answer, ask, pathOf, Refusal } from "../shared/api-client.js";
import type { TransferStatus } from "../shared/api-types.js";
import type { DecimalsBook } from "../shared/cached-loaders.js";
import { seen } from "../shared/dom.js";
import { problemBox } from "../shared/error-box.js";
import { pause } from "../shared/time.js";
import { type Look, watch } from "./poll.js";
import { stateSaid, transferDetails } from "./transfer-details.js";
import type { TransferQuestion } from "./transfer-query.js";

/** So often it is looked for what is not there: it may have been sent a moment ago. */
const mostFailures = 12;

/** Watches a transfer until it is received. Resolves when there is nothing more to see. */
export async function followTransfer(deps: {
  /** In the order in which to ask. */
  readonly questions: readonly TransferQuestion[];
  readonly decimals: DecimalsBook;
  readonly signal: AbortSignal;
  readonly onQuestion: (question: TransferQuestion) => void;
  readonly onAnswer: (...parts: readonly HTMLElement[]) => void;
  /** Told what is new, to be heard. */
  readonly onSaid: (text: string) => void;
  /** Told whether it is still watched, to be seen. */
  readonly onWatching: (text: string) => void;
  /** What is asked for is written wrongly. */
  readonly onFault: (message: string) => void;
  readonly again: () => void;
}): Promise<void> {
  const { decimals, signal, onQuestion, onAnswer, onSaid, onWatching, onFault, again } = deps;
  let { questions } = deps;
  let lastState: TransferStatus["state"] | undefined;
  let failures = 0;
  // A state is worth telling without them.
  const decimalsOf = await decimals().catch(() => () => undefined);

  /** Asks what it may be, one after the other, until it is known as one of them. */
  async function askEach([question = {}, ...others]: readonly TransferQuestion[]): Promise<Answer<TransferStatus>> {
    onQuestion(question);
    try {
      const answer = await ask<TransferStatus>(pathOf("/v1/transfer-status", question), signal);
      questions = [question];
      return answer;
    } catch (error) {
      const isUnknown = error instanceof Refusal && error.reason === "TRANSFER_NOT_FOUND";
      if (!isUnknown || others.length === 0) throw error;
      return askEach(others);
    }
  }

  async function look(): Promise<Look> {
    onWatching("Looking…");
    try {
      const found = await askEach(questions);
      const { state, token } = found.body;
      onAnswer(...transferDetails(found, decimalsOf(token), questions[0]?.network ?? ""));
      failures = 0;
      const isNew = state !== lastState;
      if (isNew) onSaid(stateSaid(found.body));
      lastState = state;
      return state === "BONDED" ? "over" : isNew ? "changed" : "same";
    } catch (error) {
      return signal.aborted ? "over" : failed(error);
    }
  }

  function failed(error: unknown): Look {
    // What was seen stays; only how it went on is not known.
    if (lastState === undefined) onAnswer(problemBox(error, again));
    if (failures === 0) onSaid((error as Error).message);
    failures += 1;
    const status = error instanceof Refusal ? error.status : 0;
    if (status === 400) onFault((error as Error).message);
    return status === 400 || failures >= mostFailures ? "over" : "same";
  }

  const onPause = (ms: number): void => onWatching(`Watching: looks again in ${Math.round(ms / 1000)} s.`);
  await watch({ look, pause, seen, onPause, signal });
  if (!signal.aborted) onWatching(failures < mostFailures ? "" : "No longer watching.");
}
