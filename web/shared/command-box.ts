import { createElement } from "./dom.js";

/** Commands, by the program that runs them. */
export type ShellCommands = Readonly<Record<string, string>>;

const COPIED_NOTICE_MS = 2_000;

/** The commands that give what the view shows, each with a button that copies it. */
export function createCommandBox(root: HTMLElement): (commands: ShellCommands) => void {
  const list = createElement("div", { class: "commands" });
  const said = createElement("p", { role: "status", class: "unseen" });
  root.replaceChildren(createElement("h2", {}, "The same from a terminal"), list, said);
  let shown = "";
  return (commands) => {
    // A button that has the focus must not vanish because the same is shown again.
    const next = JSON.stringify(commands);
    if (next === shown) return;
    shown = next;
    list.replaceChildren(
      ...Object.entries(commands).map(([program, command]) => renderCommand(program, command, said)),
    );
  };
}

function renderCommand(program: string, command: string, said: HTMLElement): HTMLElement {
  const button = createElement(
    "button",
    { type: "button", class: "small", "aria-label": `Copy the ${program} command` },
    "Copy",
  );
  button.addEventListener("click", async () => {
    const text = await copyToClipboard(command).then(
      () => "Copied",
      () => "Select it",
    );
    button.textContent = text;
    said.textContent =
      text === "Copied" ? `The ${program} command is copied.` : "This browser does not let the page copy.";
    setTimeout(() => {
      button.textContent = "Copy";
      said.textContent = "";
    }, COPIED_NOTICE_MS);
  });
  return createElement("div", { class: "command" }, createElement("code", {}, command), button);
}

async function copyToClipboard(text: string): Promise<void> {
  // Only where the page came over https or from this machine.
  if (navigator.clipboard === undefined) throw new Error("no clipboard");
  await navigator.clipboard.writeText(text);
}
