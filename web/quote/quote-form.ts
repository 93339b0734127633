import {
  hasRoute,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
  selectNearestRoute,
} from "../shared/api/route-selection.js";
import { createElement, getElement, selectOption, setAttribute } from "../shared/elements/dom.js";
import { AmountError, formatAmount, groupThousands, parseAmount } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { isCctpToken } from "../shared/format/fee-label.js";
import type { QuoteInput } from "./quote-input.js";

export interface QuoteForm {
  /** Shows an input and offers the tokens and chains of the routes. */
  fill(input: QuoteInput, routes: readonly Route[], decimals: number | undefined): void;
  /** Shows an error at the field of an API parameter. Does nothing if the form has no such field. */
  showFieldError(parameter: string, message: string): void;
  clearFieldErrors(): void;
  /** Drops typed input that has not been submitted yet: the form is no longer visible. */
  cancelPendingInput(): void;
}

/** Ids of the fields by API parameter. */
const FIELD_IDS: Readonly<Record<string, string>> = {
  network: "quote-network",
  token: "quote-token",
  fromChain: "quote-from",
  toChain: "quote-to",
  amount: "quote-amount",
  slippage: "quote-slippage",
};
/** Typed input is submitted this long after the last key. */
const INPUT_DEBOUNCE_MS = 350;

/** @param onInput called with every new input: `push` when chosen or submitted, `replace` while typing */
export function createQuoteForm(onInput: (input: QuoteInput, mode: "push" | "replace") => void): QuoteForm {
  const form = getElement("quote-form", HTMLFormElement);
  const network = getElement("quote-network", HTMLSelectElement);
  const token = getElement("quote-token", HTMLSelectElement);
  const from = getElement("quote-from", HTMLSelectElement);
  const to = getElement("quote-to", HTMLSelectElement);
  const amount = getElement("quote-amount", HTMLInputElement);
  const slippage = getElement("quote-slippage", HTMLInputElement);
  const swap = getElement("quote-swap", HTMLButtonElement);
  let routes: readonly Route[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const read = (): QuoteInput => ({
    network: network.value,
    token: token.value,
    from: from.value,
    to: to.value,
    amount: amount.value.trim(),
    slippage: slippage.value.trim(),
  });
  const submit = (mode: "push" | "replace", change: Partial<QuoteInput> = {}): void => {
    clearTimeout(timer);
    onInput({ ...read(), ...change }, mode);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit("push");
  });
  network.addEventListener("change", () => submit("push"));
  for (const select of [token, from, to]) {
    // The new token or chain may not support the other selections.
    select.addEventListener("change", () => submit("push", selectNearestRoute(routes, read())));
  }
  for (const input of [amount, slippage]) {
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => submit("replace"), INPUT_DEBOUNCE_MS);
    });
  }
  swap.addEventListener("click", () => submit("push", { from: to.value, to: from.value }));

  return {
    fill(input, availableRoutes, decimals) {
      routes = availableRoutes;
      const { token: symbol } = input;
      selectOption(network, input.network);
      setOptions(token, listTokens(routes), symbol, String);
      getElement("quote-token-note", HTMLElement).hidden = !isCctpToken(symbol);
      setOptions(from, listSourceChains(routes, symbol), input.from, formatChainName);
      setOptions(to, listDestinationChains(routes, symbol, input.from), input.to, formatChainName);
      swap.disabled = !hasRoute(routes, { token: symbol, from: input.to, to: input.from });
      // Writing the same value would move the cursor of a user who is typing.
      if (amount.value.trim() !== input.amount) amount.value = input.amount;
      if (slippage.value.trim() !== input.slippage) slippage.value = input.slippage;
      getElement("quote-unit", HTMLElement).textContent = decimals === undefined ? "smallest unit" : symbol;
      getElement("quote-raw", HTMLElement).textContent = describeRawAmount(input.amount, decimals);
    },
    showFieldError(parameter, message) {
      const id = Object.hasOwn(FIELD_IDS, parameter) ? FIELD_IDS[parameter] : undefined;
      if (id === undefined) return;
      getElement(id, HTMLElement).setAttribute("aria-invalid", "true");
      getElement(`${id}-error`, HTMLElement).textContent = message;
    },
    clearFieldErrors() {
      for (const id of Object.values(FIELD_IDS)) {
        setAttribute(getElement(id, HTMLElement), "aria-invalid", undefined);
        getElement(`${id}-error`, HTMLElement).textContent = "";
      }
    },
    cancelPendingInput: () => clearTimeout(timer),
  };
}

function setOptions(
  select: HTMLSelectElement,
  values: readonly string[],
  selected: string,
  formatLabel: (value: string) => string,
): void {
  // Replacing the options closes an open list, so they are replaced only if they differ.
  const current = [...select.options].map(({ value }) => value);
  if (current.join() !== values.join()) {
    select.replaceChildren(...values.map((value) => createElement("option", { value }, formatLabel(value))));
  }
  select.value = selected;
}

function describeRawAmount(amount: string, decimals: number | undefined): string {
  if (decimals === undefined) return "The decimals of this token are unknown.";
  try {
    const raw = parseAmount(amount, decimals);
    return `${groupThousands(formatAmount(raw, decimals))} is ${raw} in the smallest unit.`;
  } catch (error) {
    if (error instanceof AmountError) return `1 is ${10n ** BigInt(decimals)} in the smallest unit.`;
    throw error;
  }
}
