import { AmountProblem, formatAmount, groupThousands, parseAmount } from "../shared/amounts.js";
import { chainName } from "../shared/chain-names.js";
import { find, make, setAttribute } from "../shared/dom.js";
import { destinationsOf, isRoute, nearestRoute, type Route, sourcesOf, tokensOf } from "../shared/route-selection.js";
import type { QuoteWish } from "./quote-input.js";

export interface QuoteForm {
  /** Shows a wish, and beside it what else could be wished for. */
  fill(wish: QuoteWish, routes: readonly Route[], decimals: number | undefined): void;
  /** Shows at a parameter of the interface what is wrong with it; returns false where the form has no such field. */
  mark(parameter: string, message: string): boolean;
  unmark(): void;
  /** What is just being typed is no wish: nobody sees the form any more. */
  leave(): void;
}

/** Fields of the form by the parameter that they make. */
const fields: Readonly<Record<string, string>> = {
  network: "quote-network",
  token: "quote-token",
  fromChain: "quote-from",
  toChain: "quote-to",
  amount: "quote-amount",
  slippage: "quote-slippage",
};
/** So long after the last key the amount counts as typed. */
const typedMs = 350;

/** @param onWish told of every wish: chosen or sent (a new one), or still being typed */
export function createQuoteForm(onWish: (wish: QuoteWish, how: "push" | "replace") => void): QuoteForm {
  const form = find("quote-form", HTMLFormElement);
  const [network, token, from, to] = ["quote-network", "quote-token", "quote-from", "quote-to"].map((id) =>
    find(id, HTMLSelectElement),
  ) as [HTMLSelectElement, HTMLSelectElement, HTMLSelectElement, HTMLSelectElement];
  const amount = find("quote-amount", HTMLInputElement);
  const slippage = find("quote-slippage", HTMLInputElement);
  const swap = find("quote-swap", HTMLButtonElement);
  let routes: readonly Route[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const read = (): QuoteWish => ({
    network: network.value,
    token: token.value,
    from: from.value,
    to: to.value,
    amount: amount.value.trim(),
    slippage: slippage.value.trim(),
  });
  const wishNow = (how: "push" | "replace", change: Partial<QuoteWish> = {}): void => {
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
    select.addEventListener("change", () => wishNow("push", nearestRoute(routes, read())));
  }
  for (const input of [amount, slippage]) {
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => wishNow("replace"), typedMs);
    });
  }
  swap.addEventListener("click", () => wishNow("push", { from: to.value, to: from.value }));

  return {
    fill(wish, known, decimals) {
      routes = known;
      const { token: symbol } = wish;
      network.value = wish.network;
      offer(token, tokensOf(routes), symbol, String);
      offer(from, sourcesOf(routes, symbol), wish.from, chainName);
      offer(to, destinationsOf(routes, symbol, wish.from), wish.to, chainName);
      swap.disabled = !isRoute(routes, { token: symbol, from: wish.to, to: wish.from });
      // What is being typed is left as it is.
      if (amount.value.trim() !== wish.amount) amount.value = wish.amount;
      if (slippage.value.trim() !== wish.slippage) slippage.value = wish.slippage;
      find("quote-unit", HTMLElement).textContent = decimals === undefined ? "smallest unit" : symbol;
      find("quote-raw", HTMLElement).textContent = rawHint(wish.amount, decimals);
    },
    mark(parameter, message) {
      const id = Object.hasOwn(fields, parameter) ? fields[parameter] : undefined;
      if (id === undefined) return false;
      find(id, HTMLElement).setAttribute("aria-invalid", "true");
      find(`${id}-problem`, HTMLElement).textContent = message;
      return true;
    },
    unmark() {
      for (const id of Object.values(fields)) {
        setAttribute(find(id, HTMLElement), "aria-invalid", undefined);
        find(`${id}-problem`, HTMLElement).textContent = "";
      }
    },
    leave: () => clearTimeout(timer),
  };
}

function offer(
  select: HTMLSelectElement,
  values: readonly string[],
  chosen: string,
  name: (value: string) => string,
): void {
  // Made anew only where it is another list: an open one must not close.
  const offered = [...select.options].map(({ value }) => value);
  if (offered.join() !== values.join()) {
    select.replaceChildren(...values.map((value) => make("option", { value }, name(value))));
  }
  select.value = chosen;
}

function rawHint(amount: string, decimals: number | undefined): string {
  if (decimals === undefined) return "This page does not know the token's decimals.";
  try {
    const raw = parseAmount(amount, decimals);
    return `${groupThousands(formatAmount(raw, decimals))} is ${raw} in the smallest unit.`;
  } catch (error) {
    if (error instanceof AmountProblem) return `1 is ${10n ** BigInt(decimals)} in the smallest unit.`;
    throw error;
  }
}
