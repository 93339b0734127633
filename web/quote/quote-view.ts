import { AmountError, parseAmount } from "../shared/amounts.js";
import { ApiError, buildPath, fetchApiWithRetry } from "../shared/api-client.js";
import type { QuoteResponse } from "../shared/api-types.js";
import type { LoadDecimals, LoadRoutes } from "../shared/cached-loaders.js";
import { createCommandBox } from "../shared/command-box.js";
import { createElement, getElement } from "../shared/dom.js";
import { createErrorBox } from "../shared/error-box.js";
import type { ViewParameters } from "../shared/location-hash.js";
import { buildCurlCommand, buildGrpcurlCommand } from "../shared/shell-commands.js";
import type { Navigate, View } from "../shared/view.js";
import { createQuoteForm } from "./quote-form.js";
import {
  describeRouteChange,
  resolveQuoteInput,
  toGrpcMessage,
  toQueryParameters,
  toViewParameters,
} from "./quote-input.js";
import { describeQuote, PRICE_IMPACT_ID, renderQuote } from "./quote-result.js";
import { createRateCurvePanel } from "./rate-curve-panel.js";

const GRPC_METHOD = "hop.bridge.v1.BridgeService/GetQuote";
/** After so long a wait is explained. */
const SLOW_NOTICE_MS = 1_500;

export function createQuoteView({
  routes,
  decimals,
  go,
}: {
  routes: LoadRoutes;
  decimals: LoadDecimals;
  go: Navigate;
}): View {
  const answer = getElement("quote-answer", HTMLElement);
  const said = getElement("quote-said", HTMLElement);
  const slow = getElement("quote-slow", HTMLElement);
  const notice = getElement("quote-notice", HTMLElement);
  const curve = createRateCurvePanel();
  const showCommands = createCommandBox(getElement("quote-terminal", HTMLElement));
  const form = createQuoteForm((wish, how) => go({ view: "quote", parameters: toViewParameters(wish) }, how));
  let current: AbortController | undefined;
  /** What the next wish leaves open is as it was. */
  let last: ViewParameters = new Map([
    ["amount", "1"],
    ["slippage", "0.5"],
  ]);

  async function showQuote(given: ViewParameters, signal: AbortSignal, onWait: (why: ApiError) => void): Promise<void> {
    const network = given.get("network") ?? "mainnet";
    const [known, decimalsOf] = await Promise.all([routes(network), decimals()]);
    signal.throwIfAborted();
    const wish = resolveQuoteInput(given, last, known);
    const unit = decimalsOf(wish.token);
    last = toViewParameters(wish);
    go({ view: "quote", parameters: last }, "correct");
    notice.textContent = describeRouteChange(given, wish) ?? "";
    form.clearFieldErrors();
    form.fill(wish, known, unit);

    const parameters = toQueryParameters(wish, String(parseAmount(wish.amount, unit ?? 0)));
    const path = buildPath("/v1/quote", parameters);
    const { origin } = location;
    showCommands({
      curl: buildCurlCommand(origin, path),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHOD, toGrpcMessage(parameters)),
    });
    const quoted = await fetchApiWithRetry<QuoteResponse>(path, signal, onWait);
    answer.replaceChildren(...renderQuote(quoted, wish, unit));
    said.textContent = describeQuote(quoted.body, wish, unit);
    void showCurve(quoted.body, parameters, unit, signal);
  }

  async function showCurve(
    quote: QuoteResponse,
    parameters: Readonly<Record<string, string>>,
    unit: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (unit === undefined) curve.hide();
    const drawn = unit === undefined ? Promise.resolve("Not known") : curve.show(quote, parameters, unit, signal);
    const impact = await drawn.catch((error: unknown) => {
      if (!signal.aborted) curve.hide();
      return `Not known: ${(error as Error).message}`;
    });
    if (!signal.aborted) getElement(PRICE_IMPACT_ID, HTMLElement).textContent = impact;
  }

  function showProblem(error: unknown, again: () => void): void {
    curve.hide();
    // Nothing was asked for that could be asked for from a terminal.
    if (error instanceof AmountError) showCommands({});
    const field = error instanceof AmountError ? "amount" : error instanceof ApiError ? error.field : undefined;
    const message = (error as Error).message;
    if (field !== undefined) form.showFieldError(field, message);
    const box =
      error instanceof AmountError
        ? createElement("p", { class: "empty" }, "What arrives is shown here once there is an amount.")
        : createErrorBox(error, again);
    answer.replaceChildren(box);
    said.textContent = message;
  }

  function show(given: ViewParameters): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const explain = setTimeout(() => {
      slow.textContent = "Still waiting. The first quote of a route reads both of its chains.";
    }, SLOW_NOTICE_MS);
    const settle = (): void => {
      clearTimeout(explain);
      slow.textContent = "";
      answer.setAttribute("aria-busy", "false");
    };
    signal.addEventListener("abort", settle);
    answer.setAttribute("aria-busy", "true");
    curve.markOutdated();
    const onWait = ({ message, retryAfterSeconds }: ApiError): void => {
      clearTimeout(explain);
      slow.textContent = `Not yet: ${message}. The gateway is asked again in ${retryAfterSeconds} s.`;
    };
    showQuote(given, signal, onWait)
      .catch((error: unknown) => {
        if (!signal.aborted) showProblem(error, () => show(given));
      })
      .finally(() => {
        if (!signal.aborted) settle();
      });
  }

  return {
    show,
    hide() {
      form.cancelPendingInput();
      current?.abort();
    },
  };
}
