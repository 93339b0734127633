import { ApiError, fetchApi } from "../shared/api-client.js";
import type { ReadinessResponse } from "../shared/api-types.js";
import { createCommandBox } from "../shared/command-box.js";
import { createElement, getElement, waitUntilVisible } from "../shared/dom.js";
import { createErrorBox } from "../shared/error-box.js";
import { buildCurlCommand, buildGrpcurlCommand } from "../shared/shell-commands.js";
import { sleep } from "../shared/time.js";
import type { View } from "../shared/view.js";
import { describeReadiness, renderReadiness } from "./readiness-cards.js";

const READYZ_PATH = "/readyz";
/** The first answer has the service look itself: soon after, more is known. */
const FIRST_POLL_MS = 1_500;
const POLL_INTERVAL_MS = 10_000;

/** Where the service is not ready, 503 says so with the same body; one without it may be somebody else's. */
function isReadiness(body: unknown): boolean {
  const { chains, sources } = Object(body) as Partial<ReadinessResponse>;
  return Array.isArray(chains) && Array.isArray(sources);
}

/** How fresh what the service knows of each chain is, for as long as somebody looks. */
export function createChainsView(): View {
  const answer = getElement("chains-answer", HTMLElement);
  const said = getElement("chains-said", HTMLElement);
  let current: AbortController | undefined;

  async function look(signal: AbortSignal): Promise<void> {
    try {
      const readiness = await fetchApi<ReadinessResponse>(READYZ_PATH, signal, isReadiness);
      answer.replaceChildren(...renderReadiness(readiness));
      const text = describeReadiness(readiness.body);
      if (said.textContent !== text) said.textContent = text;
    } catch (error) {
      if (signal.aborted) return;
      const isAbsent = error instanceof ApiError && error.status === 404;
      const absent = createElement("p", { class: "empty" }, "This gateway does not tell about its chains here.");
      answer.replaceChildren(isAbsent ? absent : createErrorBox(error));
      said.textContent = (error as Error).message;
    }
    answer.setAttribute("aria-busy", "false");
  }

  async function lookAgainAndAgain(signal: AbortSignal): Promise<void> {
    for (let looks = 0; !signal.aborted; looks++) {
      await look(signal);
      await sleep(looks === 0 ? FIRST_POLL_MS : POLL_INTERVAL_MS, signal);
      await waitUntilVisible(signal);
    }
  }

  createCommandBox(getElement("chains-terminal", HTMLElement))({
    curl: buildCurlCommand(location.origin, READYZ_PATH),
    grpcurl: buildGrpcurlCommand(location.origin, "grpc.health.v1.Health/Check", {}),
  });

  return {
    show() {
      current?.abort();
      current = new AbortController();
      void lookAgainAndAgain(current.signal);
    },
    hide: () => current?.abort(),
  };
}
