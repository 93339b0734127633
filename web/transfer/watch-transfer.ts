import { ApiError, type ApiResponse, buildPath, fetchApi } from "../shared/api-client.js";
import type { TransferStatusResponse } from "../shared/api-types.js";
import type { LoadDecimals } from "../shared/cached-loaders.js";
import { waitUntilVisible } from "../shared/dom.js";
import { createErrorBox } from "../shared/error-box.js";
import { sleep } from "../shared/time.js";
import { type PollResult, pollWithBackoff } from "./poll.js";
import { describeTransferState, renderTransfer } from "./transfer-details.js";
import type { TransferQuery } from "./transfer-query.js";

/** So often it is looked for what is not there: it may have been sent a moment ago. */
const MAX_FAILED_ATTEMPTS = 12;

/** Watches a transfer until it is received. Resolves when there is nothing more to see. */
export async function watchTransfer(deps: {
  /** In the order in which to ask. */
  readonly questions: readonly TransferQuery[];
  readonly decimals: LoadDecimals;
  readonly signal: AbortSignal;
  readonly onQuestion: (question: TransferQuery) => void;
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
  let lastState: TransferStatusResponse["state"] | undefined;
  let failures = 0;
  // A state is worth telling without them.
  const decimalsOf = await decimals().catch(() => () => undefined);

  /** Asks what it may be, one after the other, until it is known as one of them. */
  async function askEach([question = {}, ...others]: readonly TransferQuery[]): Promise<
    ApiResponse<TransferStatusResponse>
  > {
    onQuestion(question);
    try {
      const answer = await fetchApi<TransferStatusResponse>(buildPath("/v1/transfer-status", question), signal);
      questions = [question];
      return answer;
    } catch (error) {
      const isUnknown = error instanceof ApiError && error.reason === "TRANSFER_NOT_FOUND";
      if (!isUnknown || others.length === 0) throw error;
      return askEach(others);
    }
  }

  async function look(): Promise<PollResult> {
    onWatching("Looking…");
    try {
      const found = await askEach(questions);
      const { state, token } = found.body;
      onAnswer(...renderTransfer(found, decimalsOf(token), questions[0]?.network ?? ""));
      failures = 0;
      const isNew = state !== lastState;
      if (isNew) onSaid(describeTransferState(found.body));
      lastState = state;
      return state === "BONDED" ? "over" : isNew ? "changed" : "same";
    } catch (error) {
      return signal.aborted ? "over" : failed(error);
    }
  }

  function failed(error: unknown): PollResult {
    // What was seen stays; only how it went on is not known.
    if (lastState === undefined) onAnswer(createErrorBox(error, again));
    if (failures === 0) onSaid((error as Error).message);
    failures += 1;
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 400) onFault((error as Error).message);
    return status === 400 || failures >= MAX_FAILED_ATTEMPTS ? "over" : "same";
  }

  const onPause = (ms: number): void => onWatching(`Watching: looks again in ${Math.round(ms / 1000)} s.`);
  await pollWithBackoff({ look, sleep, waitUntilVisible, onPause, signal });
  if (!signal.aborted) onWatching(failures < MAX_FAILED_ATTEMPTS ? "" : "No longer watching.");
}
