import { pathOf } from "../shared/api-client.js";
import type { DecimalsBook } from "../shared/cached-loaders.js";
import { createTerminalBox } from "../shared/command-box.js";
import { find, make, setAttribute } from "../shared/dom.js";
import { curlCommand, grpcurlCommand } from "../shared/shell-commands.js";
import type { Go, View } from "../shared/view.js";
import { questionsOf, type TransferQuestion } from "./transfer-query.js";
import { followTransfer } from "./watch-transfer.js";

const method = "hop.bridge.v1.BridgeService/GetTransferStatus";

export function createTransferView({ decimals, go }: { decimals: DecimalsBook; go: Go }): View {
  const form = find("transfer-form", HTMLFormElement);
  const input = find("transfer-of", HTMLInputElement);
  const network = find("transfer-network", HTMLSelectElement);
  const problem = find("transfer-of-problem", HTMLElement);
  const answer = find("transfer-answer", HTMLElement);
  const said = find("transfer-said", HTMLElement);
  const watching = find("transfer-watching", HTMLElement);
  const showCommands = createTerminalBox(find("transfer-terminal", HTMLElement));
  let current: AbortController | undefined;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = { of: input.value.trim(), network: network.value === "mainnet" ? "" : network.value };
    go({ view: "transfer", values: new Map(Object.entries(values)) }, "push");
  });
  network.addEventListener("change", () => {
    if (input.value.trim() !== "") form.requestSubmit();
  });

  function mark(message: string | undefined): void {
    setAttribute(input, "aria-invalid", message === undefined ? undefined : "true");
    problem.textContent = message ?? "";
  }

  function showQuestion(question: TransferQuestion): void {
    const { origin } = location;
    showCommands({
      curl: curlCommand(origin, pathOf("/v1/transfer-status", question)),
      grpcurl: grpcurlCommand(origin, method, question),
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
        make("p", { class: "empty" }, "What became of the transfer is shown here, and watched until it is received."),
      );
      return;
    }
    answer.replaceChildren(make("p", { class: "empty" }, "Asking the chains…"));
    void followTransfer({
      questions: questionsOf(values),
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
