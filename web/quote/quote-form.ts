import { toNetworkParameter } from "../shared/api/network.js";
import {
  hasRoute,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
  selectNearestRoute,
} from "../shared/api/route-selection.js";
import { getElement, selectOption, setAttribute, setOptions } from "../shared/elements/dom.js";
import { AmountError, formatAmount, groupThousands, parseAmount } from "../shared/format/amounts.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { isCctpToken } from "../shared/format/fee-label.js";
import { formatHash } from "../shared/navigation/location-hash.js";
import type { AmountKind, QuoteInput } from "./quote-input.js";

/** Ids of the fields by API parameter. */
const FIELD_IDS: Readonly<Record<string, string>> = {
  network: "quote-network",
  token: "quote-token",
  fromChain: "quote-from",
  toChain: "quote-to",
  amount: "quote-amount",
  receiveAmount: "quote-amount",
  slippage: "quote-slippage",
};
/** Typed input is submitted this long after the last key. */
const INPUT_DEBOUNCE_MS = 350;

/** Amounts in whole tokens that the buttons fill in; undefined where there is none. */
export interface AmountPresets {
  readonly min: string | undefined;
  readonly max: string | undefined;
}

const NO_PRESETS: AmountPresets = { min: undefined, max: undefined };

/** Called with every new input: `push` when chosen or submitted, `replace` while typing. */
type OnInput = (input: QuoteInput, mode: "push" | "replace") => void;

/** The form of the quote view. */
export class QuoteForm {
  readonly #onInput: OnInput;
  readonly #network = getElement("quote-network", HTMLSelectElement);
  readonly #token = getElement("quote-token", HTMLSelectElement);
  readonly #from = getElement("quote-from", HTMLSelectElement);
  readonly #to = getElement("quote-to", HTMLSelectElement);
  readonly #receives = getElement("quote-receive", HTMLInputElement);
  readonly #sends = getElement("quote-send", HTMLInputElement);
  readonly #amount = getElement("quote-amount", HTMLInputElement);
  readonly #slippage = getElement("quote-slippage", HTMLInputElement);
  readonly #swap = getElement("quote-swap", HTMLButtonElement);
  readonly #presets = {
    min: getElement("quote-min", HTMLButtonElement),
    max: getElement("quote-max", HTMLButtonElement),
  };
  #routes: readonly Route[] = [];
  /** The route whose presets are offered. */
  #route = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onInput: OnInput) {
    this.#onInput = onInput;
    getElement("quote-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit("push");
    });
    for (const choice of [this.#network, this.#sends, this.#receives])
      choice.addEventListener("change", () => this.#submit("push"));
    for (const select of [this.#token, this.#from, this.#to]) {
      // The new token or chain may not support the other selections.
      select.addEventListener("change", () => this.#submit("push", selectNearestRoute(this.#routes, this.#read())));
    }
    for (const input of [this.#amount, this.#slippage]) {
      input.addEventListener("input", () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#submit("replace"), INPUT_DEBOUNCE_MS);
      });
    }
    this.#swap.addEventListener("click", () => this.#submit("push", { from: this.#to.value, to: this.#from.value }));
    for (const button of Object.values(this.#presets)) {
      button.addEventListener("click", () => this.#submit("push", { amountKind: "send", amount: button.value }));
    }
  }

  /** Shows an input and offers the tokens and chains of the routes. */
  fill(input: QuoteInput, routes: readonly Route[], decimals: number | undefined): void {
    this.#routes = routes;
    const { token, from, to, amountKind, amount, slippage } = input;
    const route = [input.network, token, from, to].join();
    if (route !== this.#route) this.offerPresets(NO_PRESETS);
    this.#route = route;
    selectOption(this.#network, input.network);
    setOptions(this.#token, listTokens(routes), token, String);
    getElement("quote-token-note", HTMLElement).hidden = !isCctpToken(token);
    setOptions(this.#from, listSourceChains(routes, token), from, formatChainName);
    setOptions(this.#to, listDestinationChains(routes, token, from), to, formatChainName);
    this.#swap.disabled = !hasRoute(routes, { token, from: to, to: from });
    (amountKind === "send" ? this.#sends : this.#receives).checked = true;
    getElement("quote-amount-label", HTMLElement).textContent = AMOUNT_LABELS[amountKind];
    const comparison = new Map([
      ["token", token],
      ["from", from],
      ["network", toNetworkParameter(input.network)],
    ]);
    getElement("quote-compare", HTMLAnchorElement).href = formatHash({ view: "compare", parameters: comparison });
    // Writing the same value would move the cursor of a user who is typing.
    if (this.#amount.value.trim() !== amount) this.#amount.value = amount;
    if (this.#slippage.value.trim() !== slippage) this.#slippage.value = slippage;
    getElement("quote-unit", HTMLElement).textContent = decimals === undefined ? "smallest unit" : token;
    const rawAmount = getElement("quote-raw", HTMLElement);
    rawAmount.classList.toggle("developer", decimals !== undefined);
    rawAmount.textContent = describeRawAmount(amount, decimals);
  }

  /** Offers the smallest and the largest amount. */
  offerPresets({ min, max }: AmountPresets): void {
    for (const [button, amount] of [
      [this.#presets.min, min],
      [this.#presets.max, max],
    ] as const) {
      button.disabled = amount === undefined;
      button.value = amount ?? "";
    }
  }

  /** Shows an error at the field of an API parameter. Does nothing if the form has no such field. */
  showFieldError(parameter: string, message: string): void {
    const id = Object.hasOwn(FIELD_IDS, parameter) ? FIELD_IDS[parameter] : undefined;
    if (id === undefined) return;
    getElement(id, HTMLElement).setAttribute("aria-invalid", "true");
    getElement(`${id}-error`, HTMLElement).textContent = message;
  }

  clearFieldErrors(): void {
    for (const id of Object.values(FIELD_IDS)) {
      setAttribute(getElement(id, HTMLElement), "aria-invalid", undefined);
      getElement(`${id}-error`, HTMLElement).textContent = "";
    }
  }

  /** Drops typed input that has not been submitted yet: the form is no longer visible. */
  cancelPendingInput(): void {
    clearTimeout(this.#timer);
  }

  #read(): QuoteInput {
    return {
      network: this.#network.value,
      token: this.#token.value,
      from: this.#from.value,
      to: this.#to.value,
      amountKind: this.#receives.checked ? "receive" : "send",
      amount: this.#amount.value.trim(),
      slippage: this.#slippage.value.trim(),
    };
  }

  #submit(mode: "push" | "replace", change: Partial<QuoteInput> = {}): void {
    clearTimeout(this.#timer);
    this.#onInput({ ...this.#read(), ...change }, mode);
  }
}

const AMOUNT_LABELS: Readonly<Record<AmountKind, string>> = {
  send: "Amount to send",
  receive: "Amount that the recipient gets",
};

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
