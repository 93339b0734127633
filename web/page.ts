import { createChainsView } from "./chains/chains-view.js";
import { createQuoteView } from "./quote/quote-view.js";
import { createRoutesView } from "./routes/routes-view.js";
import { createDecimalsBook, createRouteBook } from "./shared/cached-loaders.js";
import { find } from "./shared/dom.js";
import { type Place, parsePlace, printPlace, type ViewName, viewNames } from "./shared/location-hash.js";
import { keepAges } from "./shared/value-elements.js";
import type { Go, View } from "./shared/view.js";
import { startTheme } from "./theme.js";
import { createTransferView } from "./transfer/transfer-view.js";

const titles: Readonly<Record<ViewName, string>> = {
  quote: "Quote",
  transfer: "Transfer",
  chains: "Chains",
  routes: "Routes",
};

/** The whole page. What it shows stands in the address: every change of it is shown, and goes back by the back button. */
function start(): void {
  const routes = createRouteBook();
  const decimals = createDecimalsBook();
  const views: Readonly<Record<ViewName, View>> = {
    quote: createQuoteView({ routes, decimals, go }),
    transfer: createTransferView({ decimals, go }),
    chains: createChainsView(),
    routes: createRoutesView({ routes, go }),
  };
  let shown: ViewName | undefined;

  function go(place: Place, how: Parameters<Go>[1]): void {
    const address = printPlace(place);
    if (how === "push" && address !== location.hash) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    if (how === "correct") linkTo(place);
    else show(place);
  }

  function show(place: Place): void {
    const { view, values } = place;
    const isOther = shown !== undefined && shown !== view;
    if (isOther && shown !== undefined) views[shown].hide();
    for (const name of viewNames) find(`view-${name}`, HTMLElement).hidden = name !== view;
    for (const name of viewNames) {
      const link = find(`link-${name}`, HTMLAnchorElement);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${titles[view]} · hop-gateway`;
    linkTo(place);
    shown = view;
    views[view].show(values);
    // Those who hear the page are told where they are now.
    if (isOther) find(`title-${view}`, HTMLElement).focus({ preventScroll: true });
    if (isOther) scrollTo(0, 0);
  }

  /** The way back to a view leads to what it showed last. */
  function linkTo(place: Place): void {
    find(`link-${place.view}`, HTMLAnchorElement).href = printPlace(place);
  }

  addEventListener("hashchange", () => show(parsePlace(location.hash)));
  find("skip", HTMLAnchorElement).addEventListener("click", (event) => {
    // An address of its own would be taken for a view's.
    event.preventDefault();
    find("main", HTMLElement).focus();
  });
  startTheme(find("theme", HTMLButtonElement));
  keepAges();
  // Goerli is offered where it has routes.
  routes("goerli").then(
    (found) => {
      for (const picker of document.querySelectorAll<HTMLElement>(".network")) picker.hidden = found.length === 0;
    },
    () => {},
  );
  show(parsePlace(location.hash));
}

start();
