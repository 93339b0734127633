import type { TransferLeg, TransferStatusResponse } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import {
  createAge,
  createAmount,
  createFieldName,
  createNote,
  createRawValue,
  createTime,
} from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatDuration, formatTime } from "../shared/format/time.js";
import { findExplorerUrl } from "./explorers.js";
import { describeExpectation, describeWait } from "./transfer-progress.js";

export interface TimelineOptions {
  readonly decimals: number | undefined;
  readonly nowMs: number;
  /** False where the chains are no public ones. */
  readonly hasExplorers: boolean;
}

/** Renders the way of a transfer: sent, what it waits for, received; with times, blocks and both transactions. */
export function renderTimeline(transfer: TransferStatusResponse, options: TimelineOptions): HTMLElement {
  const isReceived = transfer.state === "BONDED";
  return createElement(
    "ol",
    { class: "timeline", "aria-label": "Way of the transfer" },
    renderSent(transfer, options),
    ...(isReceived ? [] : [renderWait(transfer, options)]),
    isReceived ? renderReceived(transfer, options) : renderExpected(transfer),
  );
}

function renderSent(transfer: TransferStatusResponse, options: TimelineOptions): HTMLElement {
  const { sourceChainSlug, sourceChainId, transactionHash, timestamp, details } = transfer;
  return renderStep("done", `Sent on ${formatChainName(sourceChainSlug)}`, [
    createElement(
      "p",
      {},
      createTime(timestamp),
      " ",
      createFieldName("timestamp"),
      " ",
      createNote(createAge(timestamp * 1000), " ago"),
    ),
    renderLeg("source", details?.source, renderExplorerLink(sourceChainId, transactionHash, options)),
  ]);
}

function renderWait(transfer: TransferStatusResponse, { nowMs }: TimelineOptions): HTMLElement {
  const { name, who } = describeWait(transfer);
  const elapsed = createElement("p", { class: "elapsed" }, "For ", createAge(transfer.timestamp * 1000), " now.");
  const expectation = describeExpectation(transfer, nowMs);
  return renderStep("current", name, [
    elapsed,
    ...[who, expectation].filter((text) => text).map((text) => createElement("p", {}, text)),
  ]);
}

function renderExpected({ destinationChainSlug, state, details }: TransferStatusResponse): HTMLElement {
  const expectedAt = state === "PENDING" ? details?.estimatedDeliveryAt : undefined;
  const time =
    expectedAt === undefined
      ? []
      : ["expected about ", createTime(expectedAt), " ", createFieldName("estimatedDeliveryAt")];
  return renderStep("open", `Received on ${formatChainName(destinationChainSlug)}`, [createElement("p", {}, ...time)]);
}

function renderReceived(transfer: TransferStatusResponse, options: TimelineOptions): HTMLElement {
  const { destinationChainSlug, destinationChainId, bondTransactionHash, timestamp, token, details } = transfer;
  const { receivedAmount = "", receivedToken = "", destination } = details ?? {};
  const receivedAt = destination?.timestamp ?? 0;
  const contents: HTMLElement[] = [];
  // The hToken of a token has its decimals.
  const amount = (): HTMLElement => createAmount(receivedAmount, receivedToken || token, options.decimals);
  const names = [createFieldName("receivedAmount"), " ", createFieldName("receivedToken")];
  if (receivedAmount !== "") contents.push(createElement("p", {}, amount(), " arrived ", ...names));
  if (receivedAt > 0) {
    const duration = createNote(`after ${formatDuration(receivedAt - timestamp)}`);
    contents.push(
      createElement(
        "p",
        {},
        createElement("time", {}, formatTime(receivedAt)),
        " ",
        createRawValue(`${receivedAt}`),
        " ",
        duration,
      ),
    );
  }
  const link =
    bondTransactionHash === "" ? undefined : renderExplorerLink(destinationChainId, bondTransactionHash, options);
  contents.push(renderLeg("destination", destination, link));
  return renderStep("done", `Received on ${formatChainName(destinationChainSlug)}`, contents);
}

function renderStep(step: "done" | "current" | "open", name: string, contents: readonly HTMLElement[]): HTMLElement {
  const current = step === "current" ? "step" : undefined;
  const state = createElement(
    "span",
    { class: "visually-hidden" },
    { done: "Done: ", current: "Now: ", open: "Later: " }[step],
  );
  const title = createElement("h2", {}, state, name);
  return createElement("li", { "data-step": step, "aria-current": current }, title, ...contents);
}

/** Renders the block of a leg, whether it is final, and the transaction's page in an explorer. */
function renderLeg(field: string, leg: TransferLeg | undefined, link: HTMLElement | undefined): HTMLElement {
  const block =
    leg === undefined || leg.blockNumber === 0
      ? []
      : [
          `block ${leg.blockNumber.toLocaleString("en")}, `,
          createElement("span", { class: "finality" }, leg.isFinal ? "final" : "not final yet"),
          " ",
          createFieldName(field),
          " ",
        ];
  return createElement("p", { class: "leg" }, ...block, link);
}

function renderExplorerLink(chainId: number, hash: string, { hasExplorers }: TimelineOptions): HTMLElement | undefined {
  const href = hasExplorers ? findExplorerUrl(chainId, "tx", hash) : undefined;
  return href === undefined
    ? undefined
    : createElement("a", { href, rel: "noreferrer" }, `Transaction at ${new URL(href).host}`);
}
