// The page at /docs: Swagger UI with the OpenAPI description of this instance.

import { setUpThemeSwitch } from "./preferences.js";
import { createElement, getElement } from "./shared/elements/dom.js";

/** The part of Swagger UI that is used here. */
interface SwaggerUi {
  readonly specSelectors: { specJson(): { getIn(path: readonly string[]): Iterable<string> | undefined } };
}

declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => SwaggerUi;

const root = getElement("reference", HTMLElement);
const darkModeQuery = matchMedia("(prefers-color-scheme: dark)");

document.addEventListener("themechange", () => {
  const { classList, dataset } = document.documentElement;
  const isDark = dataset.theme === "dark" || (dataset.theme !== "light" && darkModeQuery.matches);
  classList.toggle("dark-mode", isDark);
});
setUpThemeSwitch(getElement("theme", HTMLButtonElement));
new MutationObserver(() => improveAccessibility()).observe(root, { childList: true, subtree: true });

const ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  supportedSubmitMethods: ["get"],
  tryItOutEnabled: true,
  // The list of schemas stays folded.
  defaultModelsExpandDepth: 0,
  // The validator badge would send requests to a third party.
  validatorUrl: null,
  onComplete: offerChains,
});

/** Fills the list that the fields of chains offer. They take other values too: any case, and chain IDs. */
function offerChains(): void {
  const slugs = ui.specSelectors.specJson().getIn(["components", "schemas", "ChainName", "examples"]) ?? [];
  getElement("chains", HTMLDataListElement).replaceChildren(
    ...[...slugs].map((value) => createElement("option", { value })),
  );
}

/** Adds what Swagger UI leaves out: names of fields and regions, keyboard access, an order of headings. */
function improveAccessibility(): void {
  for (const field of root.querySelectorAll(":is(input, select, textarea):not([aria-label], [type=file])")) {
    const parameter = field.closest("tr[data-param-name]")?.getAttribute("data-param-name") ?? undefined;
    const isExample = field.classList.contains("examples-select-element");
    field.setAttribute("aria-label", parameter ?? (isExample ? "Example" : "Media type"));
    if (parameter === "fromChain" || parameter === "toChain") field.setAttribute("list", "chains");
  }
  for (const table of root.querySelectorAll(".responses-table[role=region]:not([aria-label])")) {
    const operation = table.closest(".opblock")?.id.split("-").at(-1);
    const isLive = table.classList.contains("live-responses-table");
    table.setAttribute("aria-label", isLive ? `Response of ${operation}` : `Responses of ${operation}`);
  }
  root.querySelector(".information-container")?.setAttribute("role", "region");
  root.querySelector(".information-container")?.setAttribute("aria-label", "About this API");
  // There is no second level between the title and the first group.
  for (const heading of root.querySelectorAll(":is(h3, h4, h5):not([aria-level])"))
    heading.setAttribute("aria-level", String(Number(heading.tagName.slice(1)) - 1));
  for (const code of root.querySelectorAll("pre.microlight")) code.setAttribute("tabindex", "0");
  // The button around it does what the link does.
  for (const link of root.querySelectorAll(".opblock-summary-control a[href]")) link.removeAttribute("href");
}
