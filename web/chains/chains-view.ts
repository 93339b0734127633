import { ask, Refusal } from "../shared/api-client.js";
import type { Readiness } from "../shared/api-types.js";
import { createTerminalBox } from "../shared/command-box.js";
import { find, make, seen } from "../shared/dom.js";
import { problemBox } from "../shared/error-box.js";
import { curlCommand, grpcurlCommand } from "../shared/shell-commands.js";
import { pause } from "../shared/time.js";
import type { View } from "../shared/view.js";
import { readinessCards, readinessSaid } from "./readiness-cards.js";

const path = "/readyz";
/** The first answer has the service look itself: soon after, more is known. */
const firstPauseMs = 1_500;
const pauseMs = 10_000;

/** Where the service is not ready, 503 says so with the same body; one without it may be somebody else's. */
function isReadiness(body: unknown): boolean {
  const { chains, sources } = Object(body) as Partial<Readiness>;
  return Array.isArray(chains) && Array.isArray(sources);
}

/** How fresh what the service knows of each chain is, for as long as somebody looks. */
export function createChainsView(): View {
  const answer = find("chains-answer", HTMLElement);
  const said = find("chains-said", HTMLElement);
  let current: AbortController | undefined;

  async function look(signal: AbortSignal): Promise<void> {
    try {
      const readiness = await ask<Readiness>(path, signal, isReadiness);
      answer.replaceChildren(...readinessCards(readiness));
      const text = readinessSaid(readiness.body);
      if (said.textContent !== text) said.textContent = text;
    } catch (error) {
      if (signal.aborted) return;
      const isAbsent = error instanceof Refusal && error.status === 404;
      const absent = make("p", { class: "empty" }, "This gateway does not tell about its chains here.");
      answer.replaceChildren(isAbsent ? absent : problemBox(error));
      said.textContent = (error as Error).message;
    }
    answer.setAttribute("aria-busy", "false");
  }

  async function lookAgainAndAgain(signal: AbortSignal): Promise<void> {
    for (let looks = 0; !signal.aborted; looks++) {
      await look(signal);
      await pause(looks === 0 ? firstPauseMs : pauseMs, signal);
      await seen(signal);
    }
  }

  createTerminalBox(find("chains-terminal", HTMLElement))({
    curl: curlCommand(location.origin, path),
    grpcurl: grpcurlCommand(location.origin, "grpc.health.v1.Health/Check", {}),
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
