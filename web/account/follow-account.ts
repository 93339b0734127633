import { ApiError, fetchApiWithRetry } from "../shared/api/api-client.js";
import type { FailureEvent, TransferPage, TransferStatusResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import { openWatch } from "../shared/api/open-watch.js";
import type { StreamState } from "../shared/api/watch-stream.js";
import { createElement } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { describeTransfer } from "../shared/elements/transfer-state.js";
import { formatTime } from "../shared/format/time.js";
import { type AccountQuery, hasFilters, matchesFilters } from "./account-query.js";
import { appendPage, applyTransfer } from "./transfer-list.js";
import { createTransferRows } from "./transfer-rows.js";

export const PAGE_SIZE = 25;

export interface FollowAccountOptions {
  readonly query: AccountQuery;
  readonly getDecimals: (token: string) => number | undefined;
  readonly signal: AbortSignal;
  readonly onAnswer: (...elements: readonly HTMLElement[]) => void;
  /** Called with news for screen readers. */
  readonly onAnnounce: (message: string) => void;
  readonly onState: (state: StreamState) => void;
  readonly onFailure: (message: string) => void;
}

/**
 * Lists the transfers of an account, further pages on demand, and keeps their states up to date.
 * @throws ApiError if the first page fails, or the abort reason of the signal
 */
export async function followAccount(options: FollowAccountOptions): Promise<void> {
  const { query, getDecimals, signal, onAnswer, onAnnounce, onState, onFailure } = options;
  const list = createElement("ul", { class: "transfers" });
  const summary = createElement("p", { class: "empty" });
  const coverage = createElement("p", { class: "age" });
  const moreButton = createElement("button", { type: "button" }, "Show older transfers");
  const moreError = createElement("div", {});
  const showRows = createTransferRows(list, query, getDecimals);
  let transfers: readonly TransferStatusResponse[] = [];
  let nextPageToken = "";

  function render(): void {
    showRows(transfers);
    list.hidden = transfers.length === 0;
    moreButton.hidden = nextPageToken === "";
    const none = hasFilters(query) ? "No transfer of this account matches." : "No transfers of this account are known.";
    summary.textContent = transfers.length === 0 && nextPageToken === "" ? none : "";
    summary.hidden = summary.textContent === "";
  }

  async function loadPage(): Promise<number> {
    const path = buildPath("/v1/transfers", { ...query, pageSize: String(PAGE_SIZE), pageToken: nextPageToken });
    const { body } = await fetchApiWithRetry<TransferPage>(path, signal);
    const before = transfers.length;
    transfers = appendPage(transfers, body.transfers);
    nextPageToken = body.nextPageToken;
    const [from, until] = [formatTime(body.coveredFrom), formatTime(body.coveredUntil)];
    coverage.textContent = `Transfers sent before ${from} and changes after ${until} may be missing.`;
    render();
    return transfers.length - before;
  }

  async function loadMore(): Promise<void> {
    // A disabled button would lose the focus.
    if (moreButton.getAttribute("aria-disabled") === "true") return;
    moreButton.setAttribute("aria-disabled", "true");
    moreError.replaceChildren();
    try {
      const added = await loadPage();
      onAnnounce(`${added} older transfers are shown${nextPageToken === "" ? ". There are no more." : "."}`);
      // The button is gone; the last row is where the reader was.
      if (nextPageToken === "") list.querySelector<HTMLElement>("li:last-child a")?.focus({ preventScroll: true });
    } catch (error) {
      if (!signal.aborted) moreError.replaceChildren(createErrorBox(error));
      onAnnounce((error as Error).message);
    }
    moreButton.removeAttribute("aria-disabled");
  }

  function handleTransfer(transfer: TransferStatusResponse): void {
    const isAccepted = matchesFilters(query, transfer);
    const next = applyTransfer(transfers, transfer, { isAccepted, isComplete: nextPageToken === "" });
    if (next === transfers) return;
    transfers = next;
    render();
    onAnnounce(`${describeTransfer(transfer)}.`);
  }

  moreButton.addEventListener("click", () => void loadMore());
  await loadPage();
  onAnswer(summary, list, moreButton, moreError, coverage);
  onAnnounce(transfers.length === 0 ? (summary.textContent ?? "") : `${transfers.length} transfers are shown.`);
  const handlers = {
    onState,
    onTransfer: handleTransfer,
    onUnknown: () => {},
    onFailure: ({ message }: FailureEvent) => onFailure(message),
  };
  openWatch({ account: query.account, network: query.network }, handlers, signal);
}

/** Renders why an account cannot be listed. */
export function renderListError(error: unknown, onRetry: () => void): HTMLElement {
  if (!(error instanceof ApiError && error.reason === "INDEX_REQUIRED")) return createErrorBox(error, onRetry);
  return createElement(
    "div",
    { class: "index-required" },
    createElement("p", {}, "This gateway keeps no index of this network, and only an index can list an account."),
    createElement("p", {}, "Whoever runs the gateway can start it with one, in a file or in PostgreSQL:"),
    createElement("pre", {}, createElement("code", {}, "INDEX=sqlite:transfers.db npm start")),
    createElement(
      "p",
      {},
      "It then reads the transfers of the chains in the background. ",
      "Single transfers need no index.",
    ),
  );
}
