import { ApiError, type ApiResponse, buildPath, fetchApi } from "../shared/api/api-client.js";
import type { TransferStatusResponse } from "../shared/api/api-types.js";
import type { LoadDecimals } from "../shared/api/cached-loaders.js";
import { waitUntilVisible } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { sleep } from "../shared/format/time.js";
import { type PollResult, pollWithBackoff } from "./poll.js";
import { describeTransferState, renderTransfer } from "./transfer-details.js";
import type { TransferQuery } from "./transfer-query.js";

/** Polls this often without success before it gives up: the transfer may have been sent a moment ago. */
const MAX_FAILED_ATTEMPTS = 12;

/** Polls the status of a transfer until it is received. Resolves when polling has ended. */
export async function watchTransfer(options: {
  /** Tried in order until one finds a transfer. */
  readonly queries: readonly TransferQuery[];
  readonly loadDecimals: LoadDecimals;
  readonly signal: AbortSignal;
  readonly onQuery: (query: TransferQuery) => void;
  readonly onAnswer: (...elements: readonly HTMLElement[]) => void;
  /** Called with news for screen readers. */
  readonly onAnnounce: (message: string) => void;
  /** Called with the visible state of polling. */
  readonly onStatus: (message: string) => void;
  /** Called if the service rejects the hash or id as malformed. */
  readonly onInvalid: (message: string) => void;
  readonly onRetry: () => void;
}): Promise<void> {
  const { loadDecimals, signal, onQuery, onAnswer, onAnnounce, onStatus, onInvalid, onRetry } = options;
  let { queries } = options;
  let lastState: TransferStatusResponse["state"] | undefined;
  let failures = 0;
  // Without decimals, amounts are shown in the smallest unit.
  const getDecimals = await loadDecimals().catch(() => () => undefined);

  /** Tries the queries in order and keeps the one that succeeds. */
  async function fetchFirstFound([query = {}, ...others]: readonly TransferQuery[]): Promise<
    ApiResponse<TransferStatusResponse>
  > {
    onQuery(query);
    try {
      const response = await fetchApi<TransferStatusResponse>(buildPath("/v1/transfer-status", query), signal);
      queries = [query];
      return response;
    } catch (error) {
      const isNotFound = error instanceof ApiError && error.reason === "TRANSFER_NOT_FOUND";
      if (!isNotFound || others.length === 0) throw error;
      return fetchFirstFound(others);
    }
  }

  async function poll(): Promise<PollResult> {
    onStatus("Updating…");
    try {
      const response = await fetchFirstFound(queries);
      const { state, token } = response.body;
      onAnswer(...renderTransfer(response, getDecimals(token), queries[0]?.network ?? ""));
      failures = 0;
      const isChanged = state !== lastState;
      if (isChanged) onAnnounce(describeTransferState(response.body));
      lastState = state;
      return state === "BONDED" ? "done" : isChanged ? "changed" : "unchanged";
    } catch (error) {
      return signal.aborted ? "done" : handleFailure(error);
    }
  }

  function handleFailure(error: unknown): PollResult {
    // A status that was shown before stays on the page.
    if (lastState === undefined) onAnswer(createErrorBox(error, onRetry));
    if (failures === 0) onAnnounce((error as Error).message);
    failures += 1;
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 400) onInvalid((error as Error).message);
    return status === 400 || failures >= MAX_FAILED_ATTEMPTS ? "done" : "unchanged";
  }

  const onWait = (ms: number): void => onStatus(`Next update in ${Math.round(ms / 1000)} s.`);
  await pollWithBackoff({ poll, sleep, waitUntilVisible, onWait, signal });
  if (!signal.aborted) onStatus(failures < MAX_FAILED_ATTEMPTS ? "" : "Updates have stopped.");
}
