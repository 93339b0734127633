import { make } from "./dom.js";

/** Commands, by the program that runs them. */
export type Commands = Readonly<Record<string, string>>;

const saysCopiedMs = 2_000;

/** The commands that give what the view shows, each with a button that copies it. */
export function createTerminalBox(root: HTMLElement): (commands: Commands) => void {
  const list = make("div", { class: "commands" });
  const said = make("p", { role: "status", class: "unseen" });
  root.replaceChildren(make("h2", {}, "The same from a terminal"), list, said);
  let shown = "";
  return (commands) => {
    // A button that has the focus must not vanish because the same is shown again.
    const next = JSON.stringify(commands);
    if (next === shown) return;
    shown = next;
    list.replaceChildren(...Object.entries(commands).map(([program, command]) => line(program, command, said)));
  };
}

function line(program: string, command: string, said: HTMLElement): HTMLElement {
  const button = make(
    "button",
    { type: "button", class: "small", "aria-label": `Copy the ${program} command` },
    "Copy",
  );
  button.addEventListener("click", async () => {
    const text = await copy(command).then(
      () => "Copied",
      () => "Select it",
    );
    button.textContent = text;
    said.textContent =
      text === "Copied" ? `The ${program} command is copied.` : "This browser does not let the page copy.";
    setTimeout(() => {
      button.textContent = "Copy";
      said.textContent = "";
    }, saysCopiedMs);
  });
  return make("div", { class: "command" }, make("code", {}, command), button);
}

async function copy(text: string): Promise<void> {
  // Only where the page came over https or from this machine.
  if (navigator.clipboard === undefined) throw new Error("no clipboard");
  await navigator.clipboard.writeText(text);
}
