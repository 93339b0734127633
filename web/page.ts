import { setUpDeveloperSwitch, setUpThemeSwitch } from "./preferences.js";
import { createDecimalsLoader, createRouteLoader } from "./shared/api/cached-loaders.js";
import { getNetwork } from "./shared/api/network.js";
import { getElement } from "./shared/elements/dom.js";
import { createErrorBox } from "./shared/elements/error-box.js";
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
  const shared = { loadRoutes, loadDecimals, navigate };
  // The code of a view is loaded when it is first shown.
  const viewLoaders: Readonly<Record<ViewName, () => Promise<View>>> = {
    quote: async () => new (await import("./quote/quote-view.js")).QuoteView(shared),
    compare: async () => new (await import("./compare/compare-view.js")).CompareView(shared),
    transfer: async () => (await import("./transfer/transfer-view.js")).createTransferView(shared),
    account: async () => (await import("./account/account-view.js")).createAccountView(shared),
    chains: async () => (await import("./chains/chains-view.js")).createChainsView(),
    routes: async () => (await import("./routes/routes-view.js")).createRoutesView(shared),
  };
  const views = new Map<ViewName, Promise<View>>();
  let requested: ViewLocation | undefined;
  let shown: { readonly name: ViewName; readonly view: View } | undefined;

  function navigate(target: ViewLocation, mode: Parameters<Navigate>[1]): void {
    const hash = formatHash(target);
    if (mode === "push" && hash !== location.hash) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    if (mode === "correct") updateLink(target);
    // A view sees the same parameters as after a reload: those that are empty are absent.
    else show(parseHash(hash));
  }

  function show(target: ViewLocation): void {
    requested = target;
    const name = target.view;
    const loading = views.get(name) ?? viewLoaders[name]();
    views.set(name, loading);
    loading.then(
      (view) => {
        // Another view may have been requested meanwhile.
        if (requested === target) render(target, view);
      },
      (error: unknown) => {
        views.delete(name);
        getElement("main", HTMLElement).prepend(createErrorBox(error, () => location.reload()));
      },
    );
  }

  function render(target: ViewLocation, view: View): void {
    const isViewChange = shown !== undefined && shown.name !== target.view;
    if (isViewChange) shown?.view.hide();
    for (const name of VIEW_NAMES) getElement(`view-${name}`, HTMLElement).hidden = name !== target.view;
    for (const name of VIEW_NAMES) {
      const link = getElement(`link-${name}`, HTMLAnchorElement);
      if (name === target.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${VIEW_TITLES[target.view]} · hop-gateway`;
    updateLink(target);
    shown = { name: target.view, view };
    view.show(target.parameters);
    // Focusing the title makes screen readers announce the new view.
    if (isViewChange) getElement(`title-${target.view}`, HTMLElement).focus({ preventScroll: true });
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
  if (document.documentElement.dataset.demo !== undefined)
    void import("./transfer/demo-button.js").then(({ setUpDemoButton }) => setUpDemoButton(navigate));
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
