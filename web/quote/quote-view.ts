import { ApiError, buildPath, fetchApiWithRetry } from "../shared/api/api-client.js";
import type { DetailedQuoteResponse } from "../shared/api/api-types.js";
import type { LoadDecimals, LoadRoutes } from "../shared/api/cached-loaders.js";
import { getNetwork } from "../shared/api/network.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { AmountError, parseAmount } from "../shared/format/amounts.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { createQuoteForm } from "./quote-form.js";
import {
  describeRouteChange,
  resolveQuoteInput,
  toGrpcMessage,
  toQueryParameters,
  toViewParameters,
} from "./quote-input.js";
import { describeQuote, renderQuote } from "./quote-result.js";
import { createRateCurvePanel } from "./rate-curve-panel.js";

/** A quote that takes longer is explained. */
const SLOW_NOTICE_MS = 1_500;

/** Shows a quote for the form's input, its rate curve, and the commands that return the same quote. */
export function createQuoteView({
  loadRoutes,
  loadDecimals,
  navigate,
}: {
  loadRoutes: LoadRoutes;
  loadDecimals: LoadDecimals;
  navigate: Navigate;
}): View {
  const answer = getElement("quote-answer", HTMLElement);
  const announcement = getElement("quote-announcement", HTMLElement);
  const waitNotice = getElement("quote-wait", HTMLElement);
  const routeNotice = getElement("quote-notice", HTMLElement);
  const curve = createRateCurvePanel();
  const showCommands = createCommandBox(getElement("quote-terminal", HTMLElement));
  const form = createQuoteForm((input, mode) => navigate({ view: "quote", parameters: toViewParameters(input) }, mode));
  let current: AbortController | undefined;
  let previous: ViewParameters = new Map();

  async function showQuote(
    parameters: ViewParameters,
    signal: AbortSignal,
    onRetry: (error: ApiError) => void,
  ): Promise<void> {
    const [routes, getDecimals] = await Promise.all([loadRoutes(getNetwork(parameters)), loadDecimals()]);
    signal.throwIfAborted();
    const input = resolveQuoteInput(parameters, previous, routes);
    const decimals = getDecimals(input.token);
    previous = toViewParameters(input);
    navigate({ view: "quote", parameters: previous }, "correct");
    routeNotice.textContent = describeRouteChange(parameters, input) ?? "";
    form.clearFieldErrors();
    form.fill(input, routes, decimals);

    const query = toQueryParameters(input, String(parseAmount(input.amount, decimals ?? 0)));
    const path = buildPath("/v1/quote", query);
    const { origin } = location;
    showCommands({
      curl: buildCurlCommand(origin, path),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.quote, toGrpcMessage(query)),
    });
    const response = await fetchApiWithRetry<DetailedQuoteResponse>(path, signal, onRetry);
    answer.replaceChildren(...renderQuote(response, input, decimals));
    announcement.textContent = describeQuote(response.body, input, decimals);
    void showCurve(response.body, query, decimals, signal);
  }

  async function showCurve(
    quote: DetailedQuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (decimals === undefined) {
      curve.hide();
      return;
    }
    await curve.show(quote, query, decimals, signal).catch(() => {
      if (!signal.aborted) curve.hide();
    });
  }

  function showError(error: unknown, onRetry: () => void): void {
    curve.hide();
    // Without a valid amount there is no request to show.
    if (error instanceof AmountError) showCommands({});
    const field = error instanceof AmountError ? "amount" : error instanceof ApiError ? error.field : undefined;
    const message = (error as Error).message;
    if (field !== undefined) form.showFieldError(field, message);
    const box =
      error instanceof AmountError
        ? createElement("p", { class: "empty" }, "Enter a valid amount to get a quote.")
        : createErrorBox(error, onRetry);
    answer.replaceChildren(box);
    announcement.textContent = message;
  }

  function show(parameters: ViewParameters): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const slowTimer = setTimeout(() => {
      waitNotice.textContent = "Still waiting. The first quote of a route reads both of its chains.";
    }, SLOW_NOTICE_MS);
    const settle = (): void => {
      clearTimeout(slowTimer);
      waitNotice.textContent = "";
      answer.setAttribute("aria-busy", "false");
    };
    signal.addEventListener("abort", settle);
    answer.setAttribute("aria-busy", "true");
    curve.markOutdated();
    const onRetry = ({ message, retryAfterSeconds }: ApiError): void => {
      clearTimeout(slowTimer);
      waitNotice.textContent = `Waiting: ${message}. Next attempt in ${retryAfterSeconds} s.`;
    };
    showQuote(parameters, signal, onRetry)
      .catch((error: unknown) => {
        if (!signal.aborted) showError(error, () => show(parameters));
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
