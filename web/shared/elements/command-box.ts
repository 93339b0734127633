import { createElement } from "./dom.js";

/** Shell commands by the program that they run. */
export type ShellCommands = Readonly<Record<string, string>>;

const COPIED_NOTICE_MS = 2_000;

/** Returns a function that lists shell commands in an element, each with a button that copies it. */
export function createCommandBox(root: HTMLElement, title = "From a terminal"): (commands: ShellCommands) => void {
  const list = createElement("div", { class: "commands" });
  const announcement = createElement("p", { role: "status", class: "visually-hidden" });
  root.replaceChildren(createElement("h2", {}, title), list, announcement);
  let shown = "";
  return (commands) => {
    // Re-rendering the same commands would take the focus from a button.
    const next = JSON.stringify(commands);
    if (next === shown) return;
    shown = next;
    list.replaceChildren(
      ...Object.entries(commands).map(([program, command]) =>
        renderCommand(`${program} command`, command, announcement),
      ),
    );
  };
}

/** Shows the same example in several languages, one at a time, with a button that copies it. */
export class ExampleBox {
  readonly #languages = createElement("fieldset", { class: "choice" });
  readonly #example = createElement("div", { class: "commands" });
  readonly #announcement = createElement("p", { role: "status", class: "visually-hidden" });
  readonly #root: HTMLElement;
  #examples: Readonly<Record<string, string>> = {};
  #language = "";
  #shown = "";

  constructor(root: HTMLElement, title: string) {
    this.#root = root;
    const guide = createElement("a", { href: "/docs/integrate" }, "How to run it, look up transfers and follow them");
    const note = createElement("p", { class: "hint" }, guide);
    root.replaceChildren(createElement("h2", {}, title), note, this.#languages, this.#example, this.#announcement);
  }

  /** @param examples by language; none hides the box */
  show(examples: Readonly<Record<string, string>>): void {
    const names = Object.keys(examples);
    this.#root.hidden = names.length === 0;
    // The languages are the same for every quote: a focused one stays.
    if (names.join() !== Object.keys(this.#examples).join())
      this.#languages.replaceChildren(...this.#createChoices(names));
    this.#examples = examples;
    this.#render();
  }

  #createChoices(names: readonly string[]): readonly HTMLElement[] {
    if (!names.includes(this.#language)) this.#language = names[0] ?? "";
    const choices = names.map((name) => {
      const checked = name === this.#language ? true : undefined;
      const input = createElement("input", { type: "radio", name: `${this.#root.id}-language`, checked });
      input.addEventListener("change", () => {
        this.#language = name;
        this.#render();
      });
      return createElement("label", {}, input, createElement("span", {}, name));
    });
    return [createElement("legend", { class: "visually-hidden" }, "Language"), ...choices];
  }

  #render(): void {
    const text = this.#examples[this.#language];
    // Re-rendering the same example would take the focus from its button.
    if (text === undefined || text === this.#shown) return;
    this.#shown = text;
    this.#example.replaceChildren(renderCommand(`${this.#language} example`, text, this.#announcement));
  }
}

/** @param name what the text is, such as `curl command` */
function renderCommand(name: string, text: string, announcement: HTMLElement): HTMLElement {
  const button = createCopyButton({ text: () => text, label: "Copy", what: `the ${name}`, announcement });
  return createElement("div", { class: "command" }, createElement("code", {}, text), button);
}

/** Creates a button that copies a text, and says so in an element for screen readers. */
export function createCopyButton({
  text,
  label,
  what,
  announcement,
}: {
  readonly text: () => string;
  readonly label: string;
  /** What is copied, such as "the link". */
  readonly what: string;
  readonly announcement: HTMLElement;
}): HTMLElement {
  const name = label === "Copy" ? `Copy ${what}` : undefined;
  const button = createElement("button", { type: "button", class: "small", "aria-label": name }, label);
  button.addEventListener("click", async () => {
    const isCopied = await copyToClipboard(text()).then(
      () => true,
      () => false,
    );
    button.textContent = isCopied ? "Copied" : "Not copied";
    announcement.textContent = isCopied
      ? `${what.charAt(0).toUpperCase()}${what.slice(1)} was copied.`
      : "The browser denied access to the clipboard.";
    setTimeout(() => {
      button.textContent = label;
      announcement.textContent = "";
    }, COPIED_NOTICE_MS);
  });
  return button;
}

async function copyToClipboard(text: string): Promise<void> {
  // Undefined unless the page was loaded over https or from localhost.
  if (navigator.clipboard === undefined) throw new Error("no clipboard");
  await navigator.clipboard.writeText(text);
}
