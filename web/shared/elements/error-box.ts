import { ApiError } from "../api/api-client.js";
import { createElement } from "./dom.js";

/** Creates a box with an error's message, status and reason, and a retry button where a retry can help. */
export function createErrorBox(error: unknown, onRetry?: () => void): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const box = createElement("div", { class: "error-box" }, createElement("p", { class: "message" }, message));
  if (error instanceof ApiError) {
    const status = error.status === 0 ? "" : `HTTP ${error.status} `;
    const reason = error.reason === "" ? undefined : createElement("code", {}, error.reason);
    box.append(createElement("p", { class: "reason" }, status, reason));
  }
  // An invalid request stays invalid.
  if (onRetry !== undefined && !(error instanceof ApiError && error.status === 400))
    box.append(createRetryButton(onRetry));
  return box;
}

export function createRetryButton(onRetry: () => void): HTMLElement {
  const button = createElement("button", { type: "button", class: "small" }, "Try again");
  button.addEventListener("click", onRetry);
  return button;
}
