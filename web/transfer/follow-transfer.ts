import { ApiError, type ApiResponse, fetchApi } from "../shared/api/api-client.js";
import type { FailureEvent, TransferStatusResponse, UnknownTransfer } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals } from "../shared/api/cached-loaders.js";
import { openWatch } from "../shared/api/open-watch.js";
import type { StreamState } from "../shared/api/watch-stream.js";
import { createElement } from "../shared/elements/dom.js";
import { createErrorBox, createRetryButton } from "../shared/elements/error-box.js";
import { describeTransferState, renderTransfer } from "./transfer-details.js";
import { selectMatchingQuery, type TransferQuery } from "./transfer-query.js";

/** Follows a transfer until nothing about it can change any more. */
export async function followTransfer(options: {
  /** A hash and an id can look alike: all are watched until one is a transfer. */
  readonly queries: readonly TransferQuery[];
  readonly loadDecimals: LoadDecimals;
  readonly signal: AbortSignal;
  readonly onQuery: (query: TransferQuery) => void;
  readonly onAnswer: (...elements: readonly HTMLElement[]) => void;
  /** Called with each state of the transfer that is shown. */
  readonly onTransfer: (transfer: TransferStatusResponse, network: string) => void;
  /** Called with news for screen readers. */
  readonly onAnnounce: (message: string) => void;
  /** undefined: there is nothing to keep up to date. */
  readonly onState: (state: StreamState | undefined) => void;
  readonly onFailure: (message: string) => void;
  /** Called if the service rejects the hash or id as malformed. */
  readonly onInvalid: (message: string) => void;
  readonly onRetry: () => void;
}): Promise<void> {
  const { loadDecimals, signal, onQuery, onAnswer, onTransfer, onAnnounce, onState, onFailure, onInvalid, onRetry } =
    options;
  let { queries } = options;
  /** A transaction can send several transfers. The first is shown, with links to the others. */
  let shownId: string | undefined;
  let announced = "";
  let unknown = new Set<string>();
  let stream = new AbortController();
  signal.addEventListener("abort", () => stream.abort());
  // Without decimals, amounts are shown in the smallest unit.
  const getDecimals = await loadDecimals().catch(() => () => undefined);

  function announce(message: string): void {
    if (message !== announced) onAnnounce(message);
    announced = message;
  }

  function showTransfer(transfer: TransferStatusResponse): void {
    shownId ??= transfer.transferId;
    if (transfer.transferId !== shownId) return;
    const network = queries[0]?.network ?? "";
    onAnswer(...renderTransfer(transfer, getDecimals(transfer.token), network));
    onTransfer(transfer, network);
    announce(describeTransferState(transfer));
  }

  function handleTransfer(transfer: TransferStatusResponse): void {
    unknown = new Set();
    showTransfer(transfer);
    if (queries.length === 1) return;
    // Looking for what is not there costs the service requests.
    queries = [selectMatchingQuery(queries, transfer)];
    watch();
  }

  function handleUnknown({ transferId, transferHash, isFinal }: UnknownTransfer): void {
    unknown.add(`${transferId} ${transferHash}`);
    if (unknown.size < queries.length) return;
    const text = isFinal
      ? "No transfer has this hash or id. The gateway has looked for ten minutes."
      : "No transfer with this hash or id is known yet. One that was sent a moment ago appears here by itself.";
    onAnswer(createElement("p", { class: "empty" }, text), ...(isFinal ? [createRetryButton(onRetry)] : []));
    announce(text);
  }

  /** Shows what the service says without a stream. */
  async function showOnce(): Promise<void> {
    try {
      const { body } = await fetchFirstFound(queries, signal);
      showTransfer(body);
      onState("refused");
    } catch (error) {
      if (signal.aborted) return;
      const message = (error as Error).message;
      if (error instanceof ApiError && error.status === 400) onInvalid(message);
      if (shownId === undefined) onAnswer(createErrorBox(error, onRetry));
      announce(message);
      // A status that was shown before stays on the page.
      onState(shownId === undefined ? undefined : "refused");
    }
  }

  function watch(): void {
    stream.abort();
    stream = new AbortController();
    const [query = {}] = queries;
    onQuery(query);
    const handlers = {
      onState(state: StreamState) {
        if (state === "refused") void showOnce();
        else onState(state === "ended" && shownId === undefined ? undefined : state);
      },
      onTransfer: handleTransfer,
      onUnknown: handleUnknown,
      onFailure: ({ message }: FailureEvent) => onFailure(message),
    };
    openWatch({ ...Object.assign({}, ...queries), view: "FULL" }, handlers, stream.signal);
  }

  if (!signal.aborted) watch();
}

/** Tries the queries in order. @throws ApiError of the last */
async function fetchFirstFound(
  [query = {}, ...others]: readonly TransferQuery[],
  signal: AbortSignal,
): Promise<ApiResponse<TransferStatusResponse>> {
  try {
    return await fetchApi(buildPath("/v1/transfer-status", { ...query, view: "FULL" }), signal);
  } catch (error) {
    const isNotFound = error instanceof ApiError && error.reason === "TRANSFER_NOT_FOUND";
    if (!isNotFound || others.length === 0) throw error;
    return fetchFirstFound(others, signal);
  }
}
