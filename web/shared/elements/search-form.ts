import { toNetworkParameter } from "../api/network.js";
import { getElement, selectOption, setAttribute } from "./dom.js";

/** The form of a view that finds something by a text. */
export interface SearchForm {
  /** Fills in the text and the network, and removes the error. */
  fill(text: string, network: string): void;
  /** Shows what is wrong with the text. */
  showError(message: string): void;
}

export interface SearchFormOptions {
  /** Start of the ids of the form's elements. */
  readonly view: string;
  /** Selections beside the network. Like that, they submit the form when they change, if there is a text. */
  readonly filters?: readonly HTMLSelectElement[];
  /** @param network value of the parameter `network` */
  readonly onSubmit: (text: string, network: string) => void;
}

export function createSearchForm({ view, filters = [], onSubmit }: SearchFormOptions): SearchForm {
  const form = getElement(`${view}-form`, HTMLFormElement);
  const input = getElement(`${view}-of`, HTMLInputElement);
  const inputError = getElement(`${view}-of-error`, HTMLElement);
  const network = getElement(`${view}-network`, HTMLSelectElement);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onSubmit(input.value.trim(), toNetworkParameter(network.value));
  });
  for (const select of [network, ...filters]) {
    select.addEventListener("change", () => {
      if (input.value.trim() !== "") form.requestSubmit();
    });
  }

  function setError(message: string | undefined): void {
    setAttribute(input, "aria-invalid", message === undefined ? undefined : "true");
    inputError.textContent = message ?? "";
  }

  return {
    fill(text, networkName) {
      input.value = text;
      selectOption(network, networkName);
      setError(undefined);
    },
    showError: setError,
  };
}
