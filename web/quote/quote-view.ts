import { ApiError, fetchApiWithRetry } from "../shared/api/api-client.js";
import type { DetailedQuoteResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals, LoadRoutes } from "../shared/api/cached-loaders.js";
import { getNetwork } from "../shared/api/network.js";
import { buildQuoteSnippets } from "../shared/api/quote-snippets.js";
import { ExampleBox } from "../shared/elements/command-box.js";
import { createElement, getElement } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { AmountError, formatAmount, parseAmount } from "../shared/format/amounts.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { type AmountPresets, QuoteForm } from "./quote-form.js";
import { describeRouteChange, resolveQuoteInput, toQueryParameters, toViewParameters } from "./quote-input.js";
import { estimateMaxAmount } from "./quote-limits.js";
import { describeQuote, renderQuote } from "./quote-result.js";
import { createRateCurvePanel } from "./rate-curve-panel.js";

/** A quote that takes longer is explained. */
const SLOW_NOTICE_MS = 1_500;

interface QuoteViewOptions {
  readonly loadRoutes: LoadRoutes;
  readonly loadDecimals: LoadDecimals;
  readonly navigate: Navigate;
}

/** Shows a quote for the form's input, its rate curve, and the commands that return the same quote. */
export class QuoteView implements View {
  readonly #options: QuoteViewOptions;
  readonly #answer = getElement("quote-answer", HTMLElement);
  readonly #announcement = getElement("quote-announcement", HTMLElement);
  readonly #waitNotice = getElement("quote-wait", HTMLElement);
  readonly #routeNotice = getElement("quote-notice", HTMLElement);
  readonly #curve = createRateCurvePanel();
  readonly #examples = new ExampleBox(getElement("quote-terminal", HTMLElement), "The same quote in your language");
  readonly #form: QuoteForm;
  #current: AbortController | undefined;
  #previous: ViewParameters = new Map();

  constructor(options: QuoteViewOptions) {
    this.#options = options;
    this.#form = new QuoteForm((input, mode) =>
      options.navigate({ view: "quote", parameters: toViewParameters(input) }, mode),
    );
  }

  show(parameters: ViewParameters): void {
    this.#current?.abort();
    this.#current = new AbortController();
    const { signal } = this.#current;
    const slowTimer = setTimeout(() => {
      this.#waitNotice.textContent = "Still waiting. The first quote of a route reads both of its chains.";
    }, SLOW_NOTICE_MS);
    const settle = (): void => {
      clearTimeout(slowTimer);
      this.#waitNotice.textContent = "";
      this.#answer.setAttribute("aria-busy", "false");
    };
    signal.addEventListener("abort", settle);
    this.#answer.setAttribute("aria-busy", "true");
    this.#curve.markOutdated();
    const onRetry = ({ message, retryAfterSeconds }: ApiError): void => {
      clearTimeout(slowTimer);
      this.#waitNotice.textContent = `Waiting: ${message}. Next attempt in ${retryAfterSeconds} s.`;
    };
    this.#showQuote(parameters, signal, onRetry)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#showError(error, () => this.show(parameters));
      })
      .finally(() => {
        if (!signal.aborted) settle();
      });
  }

  hide(): void {
    this.#form.cancelPendingInput();
    this.#current?.abort();
  }

  async #showQuote(parameters: ViewParameters, signal: AbortSignal, onRetry: (error: ApiError) => void): Promise<void> {
    const { loadRoutes, loadDecimals, navigate } = this.#options;
    const [routes, getDecimals] = await Promise.all([loadRoutes(getNetwork(parameters)), loadDecimals()]);
    signal.throwIfAborted();
    const input = resolveQuoteInput(parameters, this.#previous, routes);
    const decimals = getDecimals(input.token);
    this.#previous = toViewParameters(input);
    navigate({ view: "quote", parameters: this.#previous }, "correct");
    this.#routeNotice.textContent = describeRouteChange(parameters, input) ?? "";
    this.#form.clearFieldErrors();
    this.#form.fill(input, routes, decimals);

    const query = toQueryParameters(input, String(parseAmount(input.amount, decimals ?? 0)));
    this.#examples.show(buildQuoteSnippets(location.origin, query));
    const path = buildPath("/v1/quote", { ...query, view: "FULL" });
    const response = await fetchApiWithRetry<DetailedQuoteResponse>(path, signal, onRetry);
    this.#form.offerPresets(toPresets(response.body, decimals));
    this.#answer.replaceChildren(...renderQuote(response, input, decimals));
    this.#announcement.textContent = describeQuote(response.body, input, decimals);
    void this.#showCurve(response.body, query, decimals, signal);
  }

  async #showCurve(
    quote: DetailedQuoteResponse,
    query: Readonly<Record<string, string>>,
    decimals: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (decimals === undefined) {
      this.#curve.hide();
      return;
    }
    await this.#curve.show(quote, query, decimals, signal).catch(() => {
      if (!signal.aborted) this.#curve.hide();
    });
  }

  #showError(error: unknown, onRetry: () => void): void {
    this.#curve.hide();
    // Without a valid amount there is no request to show.
    if (error instanceof AmountError) this.#examples.show({});
    const field = error instanceof AmountError ? "amount" : error instanceof ApiError ? error.field : undefined;
    const message = (error as Error).message;
    if (field !== undefined) this.#form.showFieldError(field, message);
    const box =
      error instanceof AmountError
        ? createElement("p", { class: "empty" }, "Enter a valid amount to get a quote.")
        : createErrorBox(error, onRetry);
    this.#answer.replaceChildren(box);
    this.#announcement.textContent = message;
  }
}

/** Returns the limits of a quote's route as they are typed. */
function toPresets(quote: DetailedQuoteResponse, decimals: number | undefined): AmountPresets {
  const { minAmount } = quote.details.limits;
  const max = estimateMaxAmount(quote);
  return {
    min: minAmount === "" ? undefined : formatAmount(BigInt(minAmount), decimals ?? 0),
    max: max === undefined ? undefined : formatAmount(max, decimals ?? 0),
  };
}
