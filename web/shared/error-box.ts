import { Refusal } from "./api-client.js";
import { make } from "./dom.js";

/** What went wrong, in the service's words, with its reason, and a way to try again where that may help. */
export function problemBox(error: unknown, again?: () => void): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  const box = make("div", { class: "problem" }, make("p", { class: "message" }, message));
  if (error instanceof Refusal) {
    const status = error.status === 0 ? "" : `HTTP ${error.status} `;
    const reason = error.reason === "" ? undefined : make("code", {}, error.reason);
    box.append(make("p", { class: "reason" }, status, reason));
  }
  // What was asked wrongly stays wrong.
  if (again !== undefined && !(error instanceof Refusal && error.status === 400)) {
    const button = make("button", { type: "button", class: "small" }, "Try again");
    button.addEventListener("click", again);
    box.append(button);
  }
  return box;
}
