import { createChainsView } from "./chains/chains-view.js";
import { createQuoteView } from "./quote/quote-view.js";
import { createRoutesView } from "./routes/routes-view.js";
import { createDecimalsLoader, createRouteLoader } from "./shared/cached-loaders.js";
import { getElement } from "./shared/dom.js";
import { formatHash, parseHash, VIEW_NAMES, type ViewLocation, type ViewName } from "./shared/location-hash.js";
import { startAgeUpdates } from "./shared/value-elements.js";
import type { Navigate, View } from "./shared/view.js";
import { setUpThemeSwitch } from "./theme.js";
import { createTransferView } from "./transfer/transfer-view.js";

const VIEW_TITLES: Readonly<Record<ViewName, string>> = {
  quote: "Quote",
  transfer: "Transfer",
  chains: "Chains",
  routes: "Routes",
};

/** The whole page. What it shows stands in the address: every change of it is shown, and goes back by the back button. */
function startPage(): void {
  const routes = createRouteLoader();
  const decimals = createDecimalsLoader();
  const views: Readonly<Record<ViewName, View>> = {
    quote: createQuoteView({ routes, decimals, go }),
    transfer: createTransferView({ decimals, go }),
    chains: createChainsView(),
    routes: createRoutesView({ routes, go }),
  };
  let shown: ViewName | undefined;

  function go(place: ViewLocation, how: Parameters<Navigate>[1]): void {
    const address = formatHash(place);
    if (how === "push" && address !== location.hash) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    if (how === "correct") linkTo(place);
    else show(place);
  }

  function show(place: ViewLocation): void {
    const { view, parameters } = place;
    const isOther = shown !== undefined && shown !== view;
    if (isOther && shown !== undefined) views[shown].hide();
    for (const name of VIEW_NAMES) getElement(`view-${name}`, HTMLElement).hidden = name !== view;
    for (const name of VIEW_NAMES) {
      const link = getElement(`link-${name}`, HTMLAnchorElement);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${VIEW_TITLES[view]} · hop-gateway`;
    linkTo(place);
    shown = view;
    views[view].show(parameters);
    // Those who hear the page are told where they are now.
    if (isOther) getElement(`title-${view}`, HTMLElement).focus({ preventScroll: true });
    if (isOther) scrollTo(0, 0);
  }

  /** The way back to a view leads to what it showed last. */
  function linkTo(place: ViewLocation): void {
    getElement(`link-${place.view}`, HTMLAnchorElement).href = formatHash(place);
  }

  addEventListener("hashchange", () => show(parseHash(location.hash)));
  getElement("skip", HTMLAnchorElement).addEventListener("click", (event) => {
    // An address of its own would be taken for a view's.
    event.preventDefault();
    getElement("main", HTMLElement).focus();
  });
  setUpThemeSwitch(getElement("theme", HTMLButtonElement));
  startAgeUpdates();
  // Goerli is offered where it has routes.
  routes("goerli").then(
    (found) => {
      for (const picker of document.querySelectorAll<HTMLElement>(".network")) picker.hidden = found.length === 0;
    },
    () => {},
  );
  show(parseHash(location.hash));
}

startPage();
