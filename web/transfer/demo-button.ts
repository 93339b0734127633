import { fetchApi } from "../shared/api/api-client.js";
import { getElement } from "../shared/elements/dom.js";
import type { Navigate } from "../shared/navigation/view.js";

/** A transfer of the local network takes seconds to be sent, more on a busy machine. */
const SEND_TIMEOUT_MS = 60_000;

/**
 * Makes the button of the demo send a transfer and shows its timeline. The demo names the path that sends in an attribute of
 * the page; without it, the style sheets hide the button.
 */
export function setUpDemoButton(navigate: Navigate): void {
  const path = document.documentElement.dataset.demo;
  if (path === undefined) return;
  const button = getElement("demo-send", HTMLButtonElement);
  const notice = getElement("demo-notice", HTMLElement);
  button.addEventListener("click", async () => {
    button.disabled = true;
    notice.textContent = "Sending a transfer on the local chains.";
    try {
      const signal = AbortSignal.timeout(SEND_TIMEOUT_MS);
      const { body } = await fetchApi<{ readonly transactionHash: string }>(path, signal, undefined, "POST");
      notice.textContent = "Sent. A bonder pays it out after some seconds.";
      navigate({ view: "transfer", parameters: new Map([["of", body.transactionHash]]) }, "push");
    } catch (error) {
      notice.textContent = `Not sent: ${(error as Error).message}`;
    }
    button.disabled = false;
  });
}
