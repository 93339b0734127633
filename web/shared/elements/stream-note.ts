import type { StreamState } from "../api/watch-stream.js";
import { createElement } from "./dom.js";
import { createRetryButton } from "./error-box.js";
import { createAge } from "./value-elements.js";

const STATE_LABELS: Readonly<Record<StreamState, string>> = {
  connecting: "Connecting",
  live: "Live",
  lost: "Disconnected",
  refused: "Not live",
  ended: "Final",
};

/** Says honestly whether what a view shows is kept up to date. */
export interface StreamNote {
  /** @param onRetry opens the stream again after it was refused */
  show(state: StreamState, onRetry: () => void): void;
  /** Shows why a stream failed until it is live again. */
  showFailure(message: string): void;
  clear(): void;
}

/** Creates a note in an element. */
export function createStreamNote(root: HTMLElement): StreamNote {
  let lostAtMs: number | undefined;

  function renderText(state: StreamState, onRetry: () => void): readonly (Node | string)[] {
    if (state === "connecting") return ["Waiting for the gateway."];
    if (state === "live") return ["Changes appear by themselves."];
    if (state === "ended") return ["Both blocks are final, so nothing can change any more."];
    if (state === "refused") {
      const text = "The gateway opened no stream of changes. What is shown may be outdated. ";
      return [text, createRetryButton(onRetry)];
    }
    lostAtMs ??= Date.now();
    return ["Reconnecting for ", createAge(lostAtMs), ". What is shown may be outdated."];
  }

  function render(state: StreamState, ...text: readonly (Node | string)[]): void {
    const label = createElement("span", { class: "stream", "data-stream": state }, STATE_LABELS[state]);
    root.replaceChildren(label, " ", ...text);
  }

  return {
    show(state, onRetry) {
      if (state !== "lost") lostAtMs = undefined;
      render(state, ...renderText(state, onRetry));
    },
    showFailure(message) {
      lostAtMs ??= Date.now();
      render("lost", `${message} Reconnecting.`);
    },
    clear() {
      lostAtMs = undefined;
      root.replaceChildren();
    },
  };
}
