type Child = Node | string | undefined;
/** True: there, without a value. Undefined: not there. */
type Attributes = Readonly<Record<string, string | true | undefined>>;

/** A new element. Strings become text and nothing else: what comes from outside cannot become markup. */
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

/** The element that the page has under this id. */
export function getElement<Type extends HTMLElement>(id: string, type: abstract new () => Type): Type {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no ${type.name} called ${id}`);
  return element;
}

export function setAttribute(element: Element, name: string, value: string | undefined): void {
  if (value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Resolves as soon as the page is seen, at once where the signal aborts. */
export async function waitUntilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) {
    await new Promise<void>((resolve) => {
      document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}
