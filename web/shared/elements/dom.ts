type Child = Node | string | undefined;
/** True sets an attribute without a value; undefined leaves it out. */
type Attributes = Readonly<Record<string, string | true | undefined>>;

/** Creates an element. Strings become text nodes, so data from outside cannot become markup. */
export function createElement<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/**
 * Returns the element with an id.
 * @throws Error if the page has no such element of this type
 */
export function getElement<Type extends HTMLElement>(id: string, type: abstract new () => Type): Type {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no ${type.name} with the id ${id}`);
  return element;
}

/** Sets an attribute, or removes it if the value is undefined. */
export function setAttribute(element: Element, name: string, value: string | undefined): void {
  if (value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Selects the option with a value, or the first option if there is none: a select must never look empty. */
export function selectOption(select: HTMLSelectElement, value: string): void {
  select.value = value;
  if (select.selectedIndex === -1) select.selectedIndex = 0;
}

/** Makes a select offer values and selects one of them. */
export function setOptions(
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

/** Resolves when the page is visible, or immediately when the signal aborts. */
export async function waitUntilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) {
    await new Promise<void>((resolve) => {
      document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}
