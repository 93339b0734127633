import { fetchApiWithRetry } from "../shared/api/api-client.js";
import type { BatchQuotesResponse, DetailedQuoteResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals, LoadRoutes } from "../shared/api/cached-loaders.js";
import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import { listSourceChains, listTokens, type Route, selectNearestRoute } from "../shared/api/route-selection.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { fetchTokenPrice } from "../shared/api/token-price.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement, selectOption, setAttribute, setOptions } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { convertFromUsd, formatAmount, formatUsd, groupThousands } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { compareRoutes, parseDollars } from "./comparison.js";
import { renderComparison } from "./comparison-table.js";

const DEFAULTS = { token: "ETH", from: "optimism", dollars: "1000" } as const;
const SLIPPAGE_PERCENT = "0.5";

interface CompareViewOptions {
  readonly loadRoutes: LoadRoutes;
  readonly loadDecimals: LoadDecimals;
  readonly navigate: Navigate;
}

/** Shows what a sum of dollars brings on every destination of a token and a chain, when, and whether it can be delivered. */
export class CompareView implements View {
  readonly #options: CompareViewOptions;
  readonly #answer = getElement("compare-answer", HTMLElement);
  readonly #summary = getElement("compare-summary", HTMLElement);
  readonly #dollars = getElement("compare-dollars", HTMLInputElement);
  readonly #dollarsError = getElement("compare-dollars-error", HTMLElement);
  readonly #token = getElement("compare-token", HTMLSelectElement);
  readonly #from = getElement("compare-from", HTMLSelectElement);
  readonly #network = getElement("compare-network", HTMLSelectElement);
  readonly #showCommands = createCommandBox(getElement("compare-terminal", HTMLElement));
  #current: AbortController | undefined;
  #previous: ViewParameters = new Map();

  constructor(options: CompareViewOptions) {
    this.#options = options;
    getElement("compare-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    for (const select of [this.#token, this.#from, this.#network])
      select.addEventListener("change", () => this.#submit());
  }

  show(parameters: ViewParameters): void {
    this.#current?.abort();
    this.#current = new AbortController();
    const { signal } = this.#current;
    this.#answer.setAttribute("aria-busy", "true");
    this.#compare(parameters, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#summary.textContent = "";
        this.#answer.replaceChildren(createErrorBox(error, () => this.show(parameters)));
      })
      .finally(() => {
        if (!signal.aborted) this.#answer.setAttribute("aria-busy", "false");
      });
  }

  hide(): void {
    this.#current?.abort();
  }

  #submit(): void {
    const parameters = {
      token: this.#token.value,
      from: this.#from.value,
      // A blank keeps an emptied field empty.
      dollars: this.#dollars.value.trim() || " ",
      network: toNetworkParameter(this.#network.value),
    };
    this.#options.navigate({ view: "compare", parameters: new Map(Object.entries(parameters)) }, "push");
  }

  async #compare(parameters: ViewParameters, signal: AbortSignal): Promise<void> {
    const { loadRoutes, loadDecimals } = this.#options;
    const network = getNetwork(parameters);
    const [routes, getDecimals] = await Promise.all([loadRoutes(network), loadDecimals()]);
    signal.throwIfAborted();
    const input = this.#fill(parameters, routes, network);
    const sum = parseDollars(input.dollars);
    setAttribute(this.#dollars, "aria-invalid", sum === undefined ? "true" : undefined);
    this.#dollarsError.textContent = sum === undefined ? "Use plain digits, up to a billion: 1000" : "";
    if (sum === undefined) {
      this.#clear("Enter a sum to compare.");
      return;
    }
    const { token, from } = input;
    const decimals = getDecimals(token);
    const tokenUsd =
      decimals === undefined ? 0 : await fetchTokenPrice({ routes, token, network, decimals, fromChain: from }, signal);
    if (decimals === undefined || tokenUsd === 0) {
      this.#clear(`The gateway knows no price of ${token}.`);
      return;
    }
    const amount = convertFromUsd(sum, tokenUsd, decimals);
    const query = { token, fromChain: from, slippage: SLIPPAGE_PERCENT, network: toNetworkParameter(network) };
    const path = buildPath("/v1/quotes", { ...query, amount: String(amount), view: "FULL" });
    this.#showEquivalent(path, { ...query, amount: [String(amount)], view: "FULL" });
    const { body } = await fetchApiWithRetry<BatchQuotesResponse<DetailedQuoteResponse>>(path, signal);
    const compared = compareRoutes(body.results, tokenUsd, decimals);
    const tokens = `${groupThousands(formatAmount(amount, decimals))} ${token}`;
    this.#summary.textContent = `${formatUsd(sum)} are ${tokens}. Sent from ${formatChainName(from)}, this would arrive:`;
    this.#answer.replaceChildren(renderComparison(compared, { token, from, network, decimals, amount, sum }));
  }

  /** Completes the parameters and shows them in the form. */
  #fill(parameters: ViewParameters, routes: readonly Route[], network: string) {
    const resolve = (name: keyof typeof DEFAULTS): string =>
      (parameters.get(name) ?? this.#previous.get(name) ?? DEFAULTS[name]).trim();
    const route = selectNearestRoute(routes, { token: resolve("token"), from: resolve("from") });
    if (route === undefined) throw new Error(`The network ${network} has no routes.`);
    const { token, from } = route;
    const dollars = resolve("dollars");
    this.#previous = new Map(
      Object.entries({ token, from, dollars: dollars || " ", network: toNetworkParameter(network) }),
    );
    this.#options.navigate({ view: "compare", parameters: this.#previous }, "correct");
    selectOption(this.#network, network);
    setOptions(this.#token, listTokens(routes), token, String);
    setOptions(this.#from, listSourceChains(routes, token), from, formatChainName);
    if (this.#dollars.value.trim() !== dollars) this.#dollars.value = dollars;
    return { token, from, dollars };
  }

  #showEquivalent(path: string, message: Readonly<Record<string, unknown>>): void {
    const { origin } = location;
    const present = Object.entries(message).filter(([, value]) => value !== "");
    this.#showCommands({
      curl: buildCurlCommand(origin, path),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.quotes, {
        ...Object.fromEntries(present),
        slippage: Number(SLIPPAGE_PERCENT),
      }),
    });
  }

  #clear(text: string): void {
    this.#summary.textContent = "";
    this.#showCommands({});
    this.#answer.replaceChildren(createElement("p", { class: "empty" }, text));
  }
}
