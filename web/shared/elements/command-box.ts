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
      ...Object.entries(commands).map(([program, command]) => renderCommand(program, command, announcement)),
    );
  };
}

function renderCommand(program: string, command: string, announcement: HTMLElement): HTMLElement {
  const button = createElement(
    "button",
    { type: "button", class: "small", "aria-label": `Copy the ${program} command` },
    "Copy",
  );
  button.addEventListener("click", async () => {
    const isCopied = await copyToClipboard(command).then(
      () => true,
      () => false,
    );
    button.textContent = isCopied ? "Copied" : "Not copied";
    announcement.textContent = isCopied
      ? `The ${program} command was copied.`
      : "The browser denied access to the clipboard.";
    setTimeout(() => {
      button.textContent = "Copy";
      announcement.textContent = "";
    }, COPIED_NOTICE_MS);
  });
  return createElement("div", { class: "command" }, createElement("code", {}, command), button);
}

async function copyToClipboard(text: string): Promise<void> {
  // Undefined unless the page was loaded over https or from localhost.
  if (navigator.clipboard === undefined) throw new Error("no clipboard");
  await navigator.clipboard.writeText(text);
}
