import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals, LoadRoutes } from "../shared/api/cached-loaders.js";
import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import {
  hasRoute,
  listChains,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
  type RouteSelection,
} from "../shared/api/route-selection.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement, selectOption } from "../shared/elements/dom.js";
import { createErrorBox } from "../shared/elements/error-box.js";
import { createFieldName, createRawValue } from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";
import { formatHash, type ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { loadRouteValues } from "./load-route-values.js";
import { type RouteValue, SAMPLE_DOLLARS } from "./route-value.js";

interface RoutesViewDeps {
  readonly loadRoutes: LoadRoutes;
  readonly loadDecimals: LoadDecimals;
  readonly navigate: Navigate;
}

/**
 * Shows a table of routes for every token. Every route links to its quote; those of a selected token show what a thousand
 * dollars bring.
 */
export function createRoutesView({ loadRoutes, loadDecimals, navigate }: RoutesViewDeps): View {
  const answer = getElement("routes-answer", HTMLElement);
  const summary = getElement("routes-summary", HTMLElement);
  const tokenSelect = getElement("routes-token", HTMLSelectElement);
  const networkSelect = getElement("routes-network", HTMLSelectElement);
  const showCommands = createCommandBox(getElement("routes-terminal", HTMLElement));
  let shown: ViewParameters = new Map();
  let current = new AbortController();

  for (const select of [tokenSelect, networkSelect]) {
    select.addEventListener("change", () => {
      const parameters = { token: tokenSelect.value, network: toNetworkParameter(networkSelect.value) };
      navigate({ view: "routes", parameters: new Map(Object.entries(parameters)) }, "push");
    });
  }

  async function showRoutes(parameters: ViewParameters): Promise<void> {
    const network = getNetwork(parameters);
    const routes = await loadRoutes(network);
    if (parameters !== shown) return;
    selectOption(networkSelect, network);
    const tokens = listTokens(routes);
    tokenSelect.replaceChildren(
      createElement("option", { value: "" }, "All tokens"),
      ...tokens.map((name) => createElement("option", { value: name }, name)),
    );
    const selected = tokens.find((name) => name === parameters.get("token"));
    tokenSelect.value = selected ?? "";

    const query = { token: selected ?? "", network: toNetworkParameter(network) };
    const message = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
    showCommands({
      curl: buildCurlCommand(location.origin, buildPath("/v1/available-routes", query)),
      grpcurl: buildGrpcurlCommand(location.origin, GRPC_METHODS.availableRoutes, message),
    });
    const listed = selected === undefined ? tokens : [selected];
    const countRoutes = (name: string): number => routes.filter((route) => route.token === name).length;
    const total = listed.reduce((sum, name) => sum + countRoutes(name), 0);
    const text = `${total} routes of ${listed.length === 1 ? listed[0] : `${listed.length} tokens`}`;
    summary.textContent = `${text}. Each dot is a route and links to its quote.`;
    // Tables of similar size next to each other fill the page better.
    const ordered = listed.toSorted((a, b) => countRoutes(b) - countRoutes(a));
    answer.replaceChildren(...ordered.map((name) => renderRouteTable(routes, name, network)));
    if (selected !== undefined) await showValues(routes, selected, network, text, current.signal);
  }

  async function showValues(
    routes: readonly Route[],
    token: string,
    network: string,
    text: string,
    signal: AbortSignal,
  ): Promise<void> {
    const decimals = (await loadDecimals())(token);
    if (decimals === undefined || signal.aborted) return;
    const onValues = (from: string, values: ReadonlyMap<string, RouteValue>): void => {
      for (const link of answer.querySelectorAll<HTMLAnchorElement>(`a[data-from="${from}"]`))
        showValue(link, values.get(link.dataset.to ?? ""));
      const sample = `${SAMPLE_DOLLARS.toLocaleString("en")} dollars of ${token} bring, in dollars`;
      summary.textContent = `${text}. Each number is what ${sample}, and links to a quote.`;
    };
    // Without values the routes are dots, as those of all tokens are.
    await loadRouteValues({ routes, token, network, decimals, onValues, signal }).catch(() => {});
  }

  function show(parameters: ViewParameters): void {
    shown = parameters;
    current.abort();
    current = new AbortController();
    showRoutes(parameters).catch((error: unknown) => {
      if (parameters === shown) answer.replaceChildren(createErrorBox(error, () => show(parameters)));
    });
  }

  return {
    show,
    hide() {
      shown = new Map();
      current.abort();
    },
  };
}

/** @param routes all routes of the network, so that every table lists the chains in the same order */
function renderRouteTable(routes: readonly Route[], token: string, network: string): HTMLElement {
  const chains = listChains(routes);
  const sources = listSourceChains(routes, token);
  const destinations = listDestinationChains(routes, token);
  const columns = chains.filter((slug) => destinations.includes(slug));
  const rows = chains.filter((slug) => sources.includes(slug));
  const corner = createElement("td", {}, createElement("span", { class: "visually-hidden" }, "From, to"));
  const heads = columns.map((to) =>
    createElement("th", { scope: "col" }, createElement("span", {}, formatChainName(to))),
  );
  const body = rows.map((from) => {
    const cells = columns.map((to) => createElement("td", {}, renderRouteCell(routes, { token, from, to }, network)));
    const id = routes.find(({ sourceChainSlug }) => sourceChainSlug === from)?.sourceChainId;
    const head = createElement("th", { scope: "row" }, formatChainName(from), " ", createRawValue(`${from} ${id}`));
    return createElement("tr", {}, head, ...cells);
  });
  const table = createElement(
    "table",
    {},
    createElement("caption", {}, token, " ", createFieldName("sourceChainSlug, sourceChainId")),
    createElement("thead", {}, createElement("tr", {}, corner, ...heads)),
    createElement("tbody", {}, ...body),
  );
  return createElement("div", { class: "card matrix" }, table);
}

function renderRouteCell(routes: readonly Route[], selection: RouteSelection, network: string): Node {
  const { token, from, to } = selection;
  if (!hasRoute(routes, selection)) return createElement("span", { class: "visually-hidden" }, "no route");
  const name = `Quote ${token} from ${formatChainName(from)} to ${formatChainName(to)}`;
  const parameters = new Map(Object.entries({ token, from, to, network: toNetworkParameter(network) }));
  return createElement("a", {
    href: formatHash({ view: "quote", parameters }),
    "aria-label": name,
    title: name,
    "data-from": from,
    "data-to": to,
  });
}

/** Replaces the dot of a route by what it brings. */
function showValue(link: HTMLAnchorElement, value: RouteValue | undefined): void {
  if (value === undefined) return;
  const name = link.getAttribute("aria-label") ?? "";
  const text = "error" in value ? "–" : formatDollars(value.dollars);
  const label = `${name}: ${"error" in value ? value.error : `${text} dollars arrive`}`;
  link.closest(".matrix")?.classList.add("values");
  link.textContent = text;
  link.title = label;
  link.setAttribute("aria-label", label);
}

function formatDollars(dollars: number): string {
  return dollars.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}
