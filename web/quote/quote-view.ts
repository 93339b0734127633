import { AmountProblem, parseAmount } from "../shared/amounts.js";
import { askPatiently, pathOf, Refusal } from "../shared/api-client.js";
import type { Quote } from "../shared/api-types.js";
import type { DecimalsBook, RouteBook } from "../shared/cached-loaders.js";
import { createTerminalBox } from "../shared/command-box.js";
import { find, make } from "../shared/dom.js";
import { problemBox } from "../shared/error-box.js";
import type { Values } from "../shared/location-hash.js";
import { curlCommand, grpcurlCommand } from "../shared/shell-commands.js";
import type { Go, View } from "../shared/view.js";
import { createQuoteForm } from "./quote-form.js";
import { completeWish, messageOf, noticeOf, parametersOf, valuesOf } from "./quote-input.js";
import { impactId, quoteAnswer, quoteSaid } from "./quote-result.js";
import { createCurvePanel } from "./rate-curve-panel.js";

const method = "hop.bridge.v1.BridgeService/GetQuote";
/** After so long a wait is explained. */
const slowMs = 1_500;

export function createQuoteView({ routes, decimals, go }: { routes: RouteBook; decimals: DecimalsBook; go: Go }): View {
  const answer = find("quote-answer", HTMLElement);
  const said = find("quote-said", HTMLElement);
  const slow = find("quote-slow", HTMLElement);
  const notice = find("quote-notice", HTMLElement);
  const curve = createCurvePanel();
  const showCommands = createTerminalBox(find("quote-terminal", HTMLElement));
  const form = createQuoteForm((wish, how) => go({ view: "quote", values: valuesOf(wish) }, how));
  let current: AbortController | undefined;
  /** What the next wish leaves open is as it was. */
  let last: Values = new Map([
    ["amount", "1"],
    ["slippage", "0.5"],
  ]);

  async function showQuote(given: Values, signal: AbortSignal, onWait: (why: Refusal) => void): Promise<void> {
    const network = given.get("network") ?? "mainnet";
    const [known, decimalsOf] = await Promise.all([routes(network), decimals()]);
    signal.throwIfAborted();
    const wish = completeWish(given, last, known);
    const unit = decimalsOf(wish.token);
    last = valuesOf(wish);
    go({ view: "quote", values: last }, "correct");
    notice.textContent = noticeOf(given, wish) ?? "";
    form.unmark();
    form.fill(wish, known, unit);

    const parameters = parametersOf(wish, String(parseAmount(wish.amount, unit ?? 0)));
    const path = pathOf("/v1/quote", parameters);
    const { origin } = location;
    showCommands({
      curl: curlCommand(origin, path),
      grpcurl: grpcurlCommand(origin, method, messageOf(parameters)),
    });
    const quoted = await askPatiently<Quote>(path, signal, onWait);
    answer.replaceChildren(...quoteAnswer(quoted, wish, unit));
    said.textContent = quoteSaid(quoted.body, wish, unit);
    void showCurve(quoted.body, parameters, unit, signal);
  }

  async function showCurve(
    quote: Quote,
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
    if (!signal.aborted) find(impactId, HTMLElement).textContent = impact;
  }

  function showProblem(error: unknown, again: () => void): void {
    curve.hide();
    // Nothing was asked for that could be asked for from a terminal.
    if (error instanceof AmountProblem) showCommands({});
    const field = error instanceof AmountProblem ? "amount" : error instanceof Refusal ? error.field : undefined;
    const message = (error as Error).message;
    if (field !== undefined) form.mark(field, message);
    const box =
      error instanceof AmountProblem
        ? make("p", { class: "empty" }, "What arrives is shown here once there is an amount.")
        : problemBox(error, again);
    answer.replaceChildren(box);
    said.textContent = message;
  }

  function show(given: Values): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const explain = setTimeout(() => {
      slow.textContent = "Still waiting. The first quote of a route reads both of its chains.";
    }, slowMs);
    const settle = (): void => {
      clearTimeout(explain);
      slow.textContent = "";
      answer.setAttribute("aria-busy", "false");
    };
    signal.addEventListener("abort", settle);
    answer.setAttribute("aria-busy", "true");
    curve.outdate();
    const onWait = ({ message, retryAfterSeconds }: Refusal): void => {
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
      form.leave();
      current?.abort();
    },
  };
}
