import { buildPath } from "../shared/api/api-client.js";
import type { LoadDecimals } from "../shared/api/cached-loaders.js";
import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement, selectOption, setAttribute } from "../shared/elements/dom.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { type TransferQuery, toTransferQueries } from "./transfer-query.js";
import { watchTransfer } from "./watch-transfer.js";

/** Finds a transfer by hash or id and shows its status until it is received. */
export function createTransferView({
  loadDecimals,
  navigate,
}: {
  loadDecimals: LoadDecimals;
  navigate: Navigate;
}): View {
  const form = getElement("transfer-form", HTMLFormElement);
  const input = getElement("transfer-of", HTMLInputElement);
  const network = getElement("transfer-network", HTMLSelectElement);
  const inputError = getElement("transfer-of-error", HTMLElement);
  const answer = getElement("transfer-answer", HTMLElement);
  const announcement = getElement("transfer-announcement", HTMLElement);
  const watchStatus = getElement("transfer-watching", HTMLElement);
  const showCommands = createCommandBox(getElement("transfer-terminal", HTMLElement));
  let current: AbortController | undefined;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const parameters = { of: input.value.trim(), network: toNetworkParameter(network.value) };
    navigate({ view: "transfer", parameters: new Map(Object.entries(parameters)) }, "push");
  });
  network.addEventListener("change", () => {
    if (input.value.trim() !== "") form.requestSubmit();
  });

  function showInputError(message: string | undefined): void {
    setAttribute(input, "aria-invalid", message === undefined ? undefined : "true");
    inputError.textContent = message ?? "";
  }

  function showQuery(query: TransferQuery): void {
    const { origin } = location;
    showCommands({
      curl: buildCurlCommand(origin, buildPath("/v1/transfer-status", query)),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.transferStatus, query),
    });
  }

  function show(parameters: ViewParameters): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const text = parameters.get("of") ?? parameters.get("id") ?? "";
    input.value = text;
    selectOption(network, getNetwork(parameters));
    showInputError(undefined);
    announcement.textContent = "";
    watchStatus.textContent = "";
    if (text === "") {
      showCommands({});
      const hint = "Enter a hash or an id. The status is updated until the transfer is received.";
      answer.replaceChildren(createElement("p", { class: "empty" }, hint));
      return;
    }
    answer.replaceChildren(createElement("p", { class: "empty" }, "Loading…"));
    void watchTransfer({
      queries: toTransferQueries(parameters),
      loadDecimals,
      signal,
      onQuery: showQuery,
      onAnswer: (...elements) => answer.replaceChildren(...elements),
      onAnnounce: (message) => {
        announcement.textContent = message;
      },
      onStatus: (message) => {
        watchStatus.textContent = message;
      },
      onInvalid: showInputError,
      onRetry: () => show(parameters),
    });
  }

  return { show, hide: () => current?.abort() };
}
