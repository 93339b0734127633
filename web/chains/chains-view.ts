import { ApiError, fetchApi } from "../shared/api/api-client.js";
import type { ReadinessResponse } from "../shared/api/api-types.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement, waitUntilVisible } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { sleep } from "../shared/format/time.js";
import type { View } from "../shared/navigation/view.js";
import { describeReadiness, renderReadiness } from "./readiness-cards.js";

const READYZ_PATH = "/readyz";
/** The first request makes the service probe its endpoints; their states are known soon afterwards. */
const FIRST_POLL_INTERVAL_MS = 1_500;
const POLL_INTERVAL_MS = 10_000;

/** A service that is not ready answers 503 with the same body. Any other body may come from a proxy. */
function isReadinessResponse(body: unknown): boolean {
  const { chains, sources } = Object(body) as Partial<ReadinessResponse>;
  return Array.isArray(chains) && Array.isArray(sources);
}

/** Shows the state and the age of every chain, and polls while the view is visible. */
export function createChainsView(): View {
  const answer = getElement("chains-answer", HTMLElement);
  const announcement = getElement("chains-announcement", HTMLElement);
  let current: AbortController | undefined;

  async function poll(signal: AbortSignal): Promise<void> {
    try {
      const response = await fetchApi<ReadinessResponse>(READYZ_PATH, signal, isReadinessResponse);
      answer.replaceChildren(...renderReadiness(response));
      const text = describeReadiness(response.body);
      if (announcement.textContent !== text) announcement.textContent = text;
    } catch (error) {
      if (signal.aborted) return;
      const isAbsent = error instanceof ApiError && error.status === 404;
      const notice = createElement(
        "p",
        { class: "empty" },
        "This gateway does not publish the state of its chains here.",
      );
      answer.replaceChildren(isAbsent ? notice : createErrorBox(error));
      announcement.textContent = (error as Error).message;
    }
    answer.setAttribute("aria-busy", "false");
  }

  async function pollRepeatedly(signal: AbortSignal): Promise<void> {
    for (let polls = 0; !signal.aborted; polls++) {
      await poll(signal);
      await sleep(polls === 0 ? FIRST_POLL_INTERVAL_MS : POLL_INTERVAL_MS, signal);
      await waitUntilVisible(signal);
    }
  }

  createCommandBox(getElement("chains-terminal", HTMLElement))({
    curl: buildCurlCommand(location.origin, READYZ_PATH),
    grpcurl: buildGrpcurlCommand(location.origin, GRPC_METHODS.health, {}),
  });

  return {
    show() {
      current?.abort();
      current = new AbortController();
      void pollRepeatedly(current.signal);
    },
    hide: () => current?.abort(),
  };
}
