import { createAccountView } from "./account/account-view.js";
import { createChainsView } from "./chains/chains-view.js";
import { CompareView } from "./compare/compare-view.js";
import { setUpDeveloperSwitch, setUpThemeSwitch } from "./preferences.js";
import { QuoteView } from "./quote/quote-view.js";
import { createRoutesView } from "./routes/routes-view.js";
import { createDecimalsLoader, createRouteLoader } from "./shared/api/cached-loaders.js";
import { getNetwork } from "./shared/api/network.js";
import { getElement } from "./shared/elements/dom.js";
import { startAgeUpdates } from "./shared/elements/value-elements.js";
import { isApiLink, translateApiLink } from "./shared/navigation/api-links.js";
import {
  formatHash,
  parseHash,
  VIEW_NAMES,
  type ViewLocation,
  type ViewName,
} from "./shared/navigation/location-hash.js";
import type { Navigate, View } from "./shared/navigation/view.js";
import { createTransferView } from "./transfer/transfer-view.js";

const VIEW_TITLES: Readonly<Record<ViewName, string>> = {
  quote: "Quote",
  compare: "Compare",
  transfer: "Transfer",
  account: "Account",
  chains: "Chains",
  routes: "Routes",
};

/** Starts the page. The URL hash holds its state: every change of the hash is rendered, so the back button works. */
function startPage(): void {
  const loadRoutes = createRouteLoader();
  const loadDecimals = createDecimalsLoader();
  const views: Readonly<Record<ViewName, View>> = {
    quote: new QuoteView({ loadRoutes, loadDecimals, navigate }),
    compare: new CompareView({ loadRoutes, loadDecimals, navigate }),
    transfer: createTransferView({ loadDecimals, navigate }),
    account: createAccountView({ loadRoutes, loadDecimals, navigate }),
    chains: createChainsView(),
    routes: createRoutesView({ loadRoutes, loadDecimals, navigate }),
  };
  let shown: ViewName | undefined;

  function navigate(target: ViewLocation, mode: Parameters<Navigate>[1]): void {
    const hash = formatHash(target);
    if (mode === "push" && hash !== location.hash) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    if (mode === "correct") updateLink(target);
    // A view sees the same parameters as after a reload: those that are empty are absent.
    else show(parseHash(hash));
  }

  function show(target: ViewLocation): void {
    const { view, parameters } = target;
    const isViewChange = shown !== undefined && shown !== view;
    if (isViewChange && shown !== undefined) views[shown].hide();
    for (const name of VIEW_NAMES) getElement(`view-${name}`, HTMLElement).hidden = name !== view;
    for (const name of VIEW_NAMES) {
      const link = getElement(`link-${name}`, HTMLAnchorElement);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${VIEW_TITLES[view]} · hop-gateway`;
    updateLink(target);
    shown = view;
    views[view].show(parameters);
    // Focusing the title makes screen readers announce the new view.
    if (isViewChange) getElement(`title-${view}`, HTMLElement).focus({ preventScroll: true });
    if (isViewChange) scrollTo(0, 0);
  }

  /** Makes the navigation link of a view return to what the view showed last. */
  function updateLink(target: ViewLocation): void {
    getElement(`link-${target.view}`, HTMLAnchorElement).href = formatHash(target);
  }

  /** Shows what the URL names. A link with the API's names is rewritten first. */
  async function showLocation(): Promise<void> {
    const { hash } = location;
    const target = parseHash(hash);
    if (!isApiLink(target)) {
      show(target);
      return;
    }
    // A view that is shown without routes or decimals says why.
    const routes = await loadRoutes(getNetwork(target.parameters)).catch(() => []);
    const getDecimals = await loadDecimals().catch(() => () => undefined);
    if (location.hash === hash) navigate(translateApiLink(target, routes, getDecimals), "replace");
  }

  addEventListener("hashchange", () => void showLocation());
  getElement("skip", HTMLAnchorElement).addEventListener("click", (event) => {
    // The hash of the link would be parsed as a view.
    event.preventDefault();
    getElement("main", HTMLElement).focus();
  });
  setUpDeveloperSwitch(getElement("developer", HTMLInputElement));
  setUpThemeSwitch(getElement("theme", HTMLButtonElement));
  startAgeUpdates();
  // The network selects stay hidden unless goerli has routes.
  loadRoutes("goerli").then(
    (routes) => {
      for (const field of document.querySelectorAll<HTMLElement>(".network")) field.hidden = routes.length === 0;
    },
    () => {},
  );
  void showLocation();
}

startPage();
