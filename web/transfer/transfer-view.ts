import { buildPath } from "../shared/api-client.js";
import type { LoadDecimals } from "../shared/cached-loaders.js";
import { createCommandBox } from "../shared/command-box.js";
import { createElement, getElement, setAttribute } from "../shared/dom.js";
import { buildCurlCommand, buildGrpcurlCommand } from "../shared/shell-commands.js";
import type { Navigate, View } from "../shared/view.js";
import { type TransferQuery, toTransferQueries } from "./transfer-query.js";
import { watchTransfer } from "./watch-transfer.js";

const GRPC_METHOD = "hop.bridge.v1.BridgeService/GetTransferStatus";

export function createTransferView({ decimals, go }: { decimals: LoadDecimals; go: Navigate }): View {
  const form = getElement("transfer-form", HTMLFormElement);
  const input = getElement("transfer-of", HTMLInputElement);
  const network = getElement("transfer-network", HTMLSelectElement);
  const problem = getElement("transfer-of-problem", HTMLElement);
  const answer = getElement("transfer-answer", HTMLElement);
  const said = getElement("transfer-said", HTMLElement);
  const watching = getElement("transfer-watching", HTMLElement);
  const showCommands = createCommandBox(getElement("transfer-terminal", HTMLElement));
  let current: AbortController | undefined;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = { of: input.value.trim(), network: network.value === "mainnet" ? "" : network.value };
    go({ view: "transfer", parameters: new Map(Object.entries(values)) }, "push");
  });
  network.addEventListener("change", () => {
    if (input.value.trim() !== "") form.requestSubmit();
  });

  function mark(message: string | undefined): void {
    setAttribute(input, "aria-invalid", message === undefined ? undefined : "true");
    problem.textContent = message ?? "";
  }

  function showQuestion(question: TransferQuery): void {
    const { origin } = location;
    showCommands({
      curl: buildCurlCommand(origin, buildPath("/v1/transfer-status", question)),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHOD, question),
    });
  }

  function show(values: ReadonlyMap<string, string>): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const text = values.get("of") ?? values.get("id") ?? "";
    input.value = text;
    network.value = values.get("network") ?? "mainnet";
    mark(undefined);
    said.textContent = "";
    watching.textContent = "";
    if (text === "") {
      showCommands({});
      answer.replaceChildren(
        createElement(
          "p",
          { class: "empty" },
          "What became of the transfer is shown here, and watched until it is received.",
        ),
      );
      return;
    }
    answer.replaceChildren(createElement("p", { class: "empty" }, "Asking the chains…"));
    void watchTransfer({
      questions: toTransferQueries(values),
      decimals,
      signal,
      onQuestion: showQuestion,
      onAnswer: (...parts) => answer.replaceChildren(...parts),
      onSaid: (text) => {
        said.textContent = text;
      },
      onWatching: (text) => {
        watching.textContent = text;
      },
      onFault: mark,
      again: () => show(values),
    });
  }

  return { show, hide: () => current?.abort() };
}
