import { ApiError } from "./api-client.js";
import { createElement } from "./dom.js";

/** What went wrong, in the service's words, with its reason, and a way to try again where that may help. */
export function createErrorBox(error: unknown, again?: () => void): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const box = createElement("div", { class: "problem" }, createElement("p", { class: "message" }, message));
  if (error instanceof ApiError) {
    const status = error.status === 0 ? "" : `HTTP ${error.status} `;
    const reason = error.reason === "" ? undefined : createElement("code", {}, error.reason);
    box.append(createElement("p", { class: "reason" }, status, reason));
  }
  // What was asked wrongly stays wrong.
  if (again !== undefined && !(error instanceof ApiError && error.status === 400)) {
    const button = createElement("button", { type: "button", class: "small" }, "Try again");
    button.addEventListener("click", again);
    box.append(button);
  }
  return box;
}
