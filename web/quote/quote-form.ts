import { AmountError, formatAmount, groupThousands, parseAmount } from "../shared/amounts.js";
import { formatChainName } from "../shared/chain-names.js";
import { createElement, getElement, setAttribute } from "../shared/dom.js";
import {
  hasRoute,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
  selectNearestRoute,
} from "../shared/route-selection.js";
import type { QuoteInput } from "./quote-input.js";

export interface QuoteForm {
  /** Shows a wish, and beside it what else could be wished for. */
  fill(wish: QuoteInput, routes: readonly Route[], decimals: number | undefined): void;
  /** Shows at a parameter of the interface what is wrong with it; returns false where the form has no such field. */
  showFieldError(parameter: string, message: string): boolean;
  clearFieldErrors(): void;
  /** What is just being typed is no wish: nobody sees the form any more. */
  cancelPendingInput(): void;
}

/** Fields of the form by the parameter that they make. */
const FIELD_IDS: Readonly<Record<string, string>> = {
  network: "quote-network",
  token: "quote-token",
  fromChain: "quote-from",
  toChain: "quote-to",
  amount: "quote-amount",
  slippage: "quote-slippage",
};
/** So long after the last key the amount counts as typed. */
const INPUT_DEBOUNCE_MS = 350;

/** @param onWish told of every wish: chosen or sent (a new one), or still being typed */
export function createQuoteForm(onWish: (wish: QuoteInput, how: "push" | "replace") => void): QuoteForm {
  const form = getElement("quote-form", HTMLFormElement);
  const [network, token, from, to] = ["quote-network", "quote-token", "quote-from", "quote-to"].map((id) =>
    getElement(id, HTMLSelectElement),
  ) as [HTMLSelectElement, HTMLSelectElement, HTMLSelectElement, HTMLSelectElement];
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
  const wishNow = (how: "push" | "replace", change: Partial<QuoteInput> = {}): void => {
    clearTimeout(timer);
    onWish({ ...read(), ...change }, how);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    wishNow("push");
  });
  network.addEventListener("change", () => wishNow("push"));
  for (const select of [token, from, to]) {
    // Another token or source may not have the rest.
    select.addEventListener("change", () => wishNow("push", selectNearestRoute(routes, read())));
  }
  for (const input of [amount, slippage]) {
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => wishNow("replace"), INPUT_DEBOUNCE_MS);
    });
  }
  swap.addEventListener("click", () => wishNow("push", { from: to.value, to: from.value }));

  return {
    fill(wish, known, decimals) {
      routes = known;
      const { token: symbol } = wish;
      network.value = wish.network;
      setOptions(token, listTokens(routes), symbol, String);
      setOptions(from, listSourceChains(routes, symbol), wish.from, formatChainName);
      setOptions(to, listDestinationChains(routes, symbol, wish.from), wish.to, formatChainName);
      swap.disabled = !hasRoute(routes, { token: symbol, from: wish.to, to: wish.from });
      // What is being typed is left as it is.
      if (amount.value.trim() !== wish.amount) amount.value = wish.amount;
      if (slippage.value.trim() !== wish.slippage) slippage.value = wish.slippage;
      getElement("quote-unit", HTMLElement).textContent = decimals === undefined ? "smallest unit" : symbol;
      getElement("quote-raw", HTMLElement).textContent = describeRawAmount(wish.amount, decimals);
    },
    showFieldError(parameter, message) {
      const id = Object.hasOwn(FIELD_IDS, parameter) ? FIELD_IDS[parameter] : undefined;
      if (id === undefined) return false;
      getElement(id, HTMLElement).setAttribute("aria-invalid", "true");
      getElement(`${id}-problem`, HTMLElement).textContent = message;
      return true;
    },
    clearFieldErrors() {
      for (const id of Object.values(FIELD_IDS)) {
        setAttribute(getElement(id, HTMLElement), "aria-invalid", undefined);
        getElement(`${id}-problem`, HTMLElement).textContent = "";
      }
    },
    cancelPendingInput: () => clearTimeout(timer),
  };
}

function setOptions(
  select: HTMLSelectElement,
  values: readonly string[],
  chosen: string,
  name: (value: string) => string,
): void {
  // Made anew only where it is another list: an open one must not close.
  const offered = [...select.options].map(({ value }) => value);
  if (offered.join() !== values.join()) {
    select.replaceChildren(...values.map((value) => createElement("option", { value }, name(value))));
  }
  select.value = chosen;
}

function describeRawAmount(amount: string, decimals: number | undefined): string {
  if (decimals === undefined) return "This page does not know the token's decimals.";
  try {
    const raw = parseAmount(amount, decimals);
    return `${groupThousands(formatAmount(raw, decimals))} is ${raw} in the smallest unit.`;
  } catch (error) {
    if (error instanceof AmountError) return `1 is ${10n ** BigInt(decimals)} in the smallest unit.`;
    throw error;
  }
}
