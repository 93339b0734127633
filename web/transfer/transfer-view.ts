import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals } from "../shared/api/cached-loaders.js";
import { getNetwork } from "../shared/api/network.js";
import { buildCurlStreamCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox, createCopyButton } from "../shared/elements/command-box.js";
import { createElement, getElement } from "../shared/elements/dom.js";
import { createSearchForm } from "../shared/elements/search-form.js";
import { createStreamNote } from "../shared/elements/stream-note.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { followTransfer } from "./follow-transfer.js";
import { type TransferQuery, toTransferQueries } from "./transfer-query.js";
import { WithdrawalPanel } from "./withdrawal-panel.js";

/** Finds a transfer by hash or id and shows how it changes until nothing about it can change any more. */
export function createTransferView({
  loadDecimals,
  navigate,
}: {
  loadDecimals: LoadDecimals;
  navigate: Navigate;
}): View {
  const form = createSearchForm({
    view: "transfer",
    onSubmit: (of, network) =>
      navigate({ view: "transfer", parameters: new Map(Object.entries({ of, network })) }, "push"),
  });
  const answer = getElement("transfer-answer", HTMLElement);
  const announcement = getElement("transfer-announcement", HTMLElement);
  const note = createStreamNote(getElement("transfer-stream", HTMLElement));
  const showCommands = createCommandBox(getElement("transfer-terminal", HTMLElement));
  const share = getElement("transfer-share", HTMLElement);
  share.append(createCopyButton({ text: () => location.href, label: "Copy link", what: "the link", announcement }));
  const withdrawal = new WithdrawalPanel(getElement("transfer-withdrawal", HTMLElement));
  let current: AbortController | undefined;

  function showQuery(query: TransferQuery): void {
    const { origin } = location;
    const full = { ...query, view: "FULL" };
    // The contract repeats these two.
    const message = Object.fromEntries(
      Object.entries(full).map(([name, value]) => [name, name.startsWith("transfer") ? [value] : value]),
    );
    showCommands({
      curl: buildCurlStreamCommand(origin, buildPath("/v1/transfers:watch", full)),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.watchTransfers, message),
    });
  }

  function show(parameters: ViewParameters): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const text = parameters.get("of") ?? parameters.get("id") ?? "";
    form.fill(text, getNetwork(parameters));
    announcement.textContent = "";
    note.clear();
    withdrawal.clear();
    share.hidden = true;
    if (text === "") {
      showCommands({});
      const hint = "Enter a hash or an id. Its status is kept up to date until it is final.";
      answer.replaceChildren(createElement("p", { class: "empty" }, hint));
      return;
    }
    answer.replaceChildren(createElement("p", { class: "empty loading" }, "Loading…"));
    const onRetry = (): void => show(parameters);
    void followTransfer({
      queries: toTransferQueries(parameters),
      loadDecimals,
      signal,
      onQuery: showQuery,
      onAnswer: (...elements) => answer.replaceChildren(...elements),
      onTransfer(transfer, network) {
        share.hidden = false;
        withdrawal.show(transfer, network);
      },
      onAnnounce: (message) => {
        announcement.textContent = message;
      },
      onState(state) {
        if (state === undefined) note.clear();
        else note.show(state, onRetry);
      },
      onFailure: (message) => note.showFailure(message),
      onInvalid: form.showError,
      onRetry,
    });
  }

  function hide(): void {
    current?.abort();
    withdrawal.clear();
  }

  return { show, hide };
}
