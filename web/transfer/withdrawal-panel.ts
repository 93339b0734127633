import { fetchApi } from "../shared/api/api-client.js";
import type { TransferStatusResponse, WithdrawalResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import { buildCastCommand } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, waitUntilVisible } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { createDescription, createNote, createTime } from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { isCctpTransfer } from "../shared/format/fee-label.js";
import { sleep } from "../shared/format/time.js";
import type { WithdrawalCall } from "../withdrawal.js";
import { findExplorerUrl } from "./explorers.js";
import { describeWithdrawal, listWithdrawalSteps, mayNeedWithdrawal } from "./withdrawal-steps.js";

interface ShownWithdrawal {
  readonly withdrawal: WithdrawalResponse;
  readonly call: WithdrawalCall | undefined;
  /** Header of the response. */
  readonly warning: string | null;
}

const POLL_INTERVAL_MS = 30_000;

/** Shows what can be done for a transfer that no bonder pays or no relayer redeems, with the transaction to send. */
export class WithdrawalPanel {
  readonly #root: HTMLElement;
  readonly #heading = createElement("h2", {});
  readonly #answer = createElement("div", { class: "answer" });
  readonly #showCommands: ReturnType<typeof createCommandBox>;
  #current: AbortController | undefined;
  #shown = "";

  constructor(root: HTMLElement) {
    this.#root = root;
    const commands = createElement("div", { class: "terminal" });
    this.#showCommands = createCommandBox(commands, "Send it with Foundry");
    root.replaceChildren(this.#heading, this.#answer, commands);
  }

  /** Shows a transfer as it is now, and follows it. Hides the panel if nobody has to do anything. */
  show(transfer: TransferStatusResponse, network: string): void {
    this.#current?.abort();
    if (!mayNeedWithdrawal(transfer, Date.now())) {
      this.clear();
      return;
    }
    this.#heading.textContent = isCctpTransfer(transfer) ? "If nobody redeems it" : "If no bonder pays";
    this.#current = new AbortController();
    void this.#follow(transfer, network, this.#current.signal);
  }

  clear(): void {
    this.#current?.abort();
    this.#root.hidden = true;
    this.#answer.replaceChildren();
    this.#showCommands({});
    this.#shown = "";
  }

  async #follow(transfer: TransferStatusResponse, network: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const path = buildPath("/v1/withdrawal", { transferId: transfer.transferId, network });
        const { body, headers } = await fetchApi<WithdrawalResponse>(path, signal);
        if (body.transferId !== transfer.transferId) throw new Error("The gateway answered for another transfer.");
        const call = await encodeCall(body);
        if (signal.aborted) return;
        this.#render(transfer, { withdrawal: body, call, warning: headers.get("warning") });
      } catch (error) {
        if (signal.aborted) return;
        this.#showError(error);
      }
      await sleep(POLL_INTERVAL_MS, signal);
      await waitUntilVisible(signal);
    }
  }

  /** Shows an error instead of an answer that may be wrong by now. */
  #showError(error: unknown): void {
    this.#root.hidden = false;
    this.#shown = "";
    this.#answer.replaceChildren(createErrorBox(error));
    this.#showCommands({});
  }

  #render(transfer: TransferStatusResponse, shown: ShownWithdrawal): void {
    const { withdrawal, call, warning } = shown;
    if (withdrawal.state === "RECEIVED" || withdrawal.state === "AUTOMATIC") {
      this.clear();
      return;
    }
    const text = describeWithdrawal(withdrawal, Date.now());
    // Rendering the same again would take the focus and the selection.
    const next = JSON.stringify([text, shown]);
    if (next === this.#shown) return;
    this.#shown = next;
    this.#answer.replaceChildren(
      createElement("p", {}, text),
      ...(warning === null ? [] : [createElement("p", { class: "warning" }, parseWarning(warning))]),
      renderSteps(transfer, withdrawal),
      ...(call === undefined ? [] : [renderCall(withdrawal, call)]),
    );
    this.#showCommands(call === undefined ? {} : { cast: buildCastCommand(call) });
    this.#root.hidden = false;
  }
}

/** Verifies a response and encodes its transaction; undefined: there is none yet. @throws Error when it does not fit */
async function encodeCall(withdrawal: WithdrawalResponse): Promise<WithdrawalCall | undefined> {
  if (withdrawal.merkleProof === undefined && withdrawal.cctp?.attestation === undefined) return undefined;
  // Few users need it, and it is half as large as the rest of the page.
  const { encodeWithdrawal } = await import("../withdrawal.js");
  return encodeWithdrawal(withdrawal);
}

function renderSteps({ timestamp }: TransferStatusResponse, withdrawal: WithdrawalResponse): HTMLElement {
  const { steps, done } = listWithdrawalSteps(withdrawal);
  const { availableAt, state } = withdrawal;
  const times: (number | undefined)[] = [timestamp, state === "WAITING_FOR_COMMIT" ? availableAt : undefined];
  const items = steps.map(({ name, note }, index) => {
    const time = times[index];
    const isDone = index < done;
    return createElement(
      "li",
      { "data-step": isDone ? "done" : "open", "aria-current": index === done ? "step" : undefined },
      createElement("span", { class: "name" }, isDone ? `${name}: done` : name),
      isDone || note === "" ? undefined : createNote(note),
      time === undefined ? undefined : createNote(isDone ? "" : "anybody from ", createTime(time)),
    );
  });
  return createElement("ol", { class: "steps" }, ...items);
}

function renderCall({ destinationChainSlug }: WithdrawalResponse, { chainId, to, data }: WithdrawalCall): HTMLElement {
  const href = findExplorerUrl(chainId, "address", to);
  const address =
    href === undefined
      ? createElement("span", { class: "hash" }, to)
      : createElement("a", { class: "hash", href, rel: "noreferrer" }, to);
  const chain = createElement("span", {}, `${formatChainName(destinationChainSlug)} (${chainId})`);
  return createElement(
    "dl",
    { class: "details" },
    ...createDescription("Chain", ["chainId"], chain),
    ...createDescription("Contract", ["to"], address),
    ...createDescription(
      "Call data, verified and encoded in this page",
      ["data"],
      createElement("code", { class: "hash" }, data),
    ),
  );
}

/** Returns the text of a `Warning` header. */
function parseWarning(header: string): string {
  return /"(.*)"/.exec(header)?.[1]?.replaceAll(/\\(.)/g, "$1") ?? header;
}
