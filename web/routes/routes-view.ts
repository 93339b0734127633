import { buildPath } from "../shared/api-client.js";
import type { LoadRoutes } from "../shared/cached-loaders.js";
import { formatChainName } from "../shared/chain-names.js";
import { createCommandBox } from "../shared/command-box.js";
import { createElement, getElement } from "../shared/dom.js";
import { createErrorBox } from "../shared/error-box.js";
import { formatHash, type ViewParameters } from "../shared/location-hash.js";
import {
  hasRoute,
  listChains,
  listDestinationChains,
  listSourceChains,
  listTokens,
  type Route,
} from "../shared/route-selection.js";
import { buildCurlCommand, buildGrpcurlCommand } from "../shared/shell-commands.js";
import type { Navigate, View } from "../shared/view.js";

const GRPC_METHOD = "hop.bridge.v1.BridgeService/ListAvailableRoutes";

/** Which token goes from where to where: a table for each, with the quote behind each route. */
export function createRoutesView({ routes, go }: { routes: LoadRoutes; go: Navigate }): View {
  const answer = getElement("routes-answer", HTMLElement);
  const said = getElement("routes-said", HTMLElement);
  const token = getElement("routes-token", HTMLSelectElement);
  const network = getElement("routes-network", HTMLSelectElement);
  const showCommands = createCommandBox(getElement("routes-terminal", HTMLElement));
  let shown: ViewParameters = new Map();

  for (const select of [token, network]) {
    select.addEventListener("change", () => {
      const values = { token: token.value, network: network.value === "mainnet" ? "" : network.value };
      go({ view: "routes", parameters: new Map(Object.entries(values)) }, "push");
    });
  }

  async function showRoutes(values: ViewParameters): Promise<void> {
    const itsNetwork = values.get("network") ?? "mainnet";
    const known = await routes(itsNetwork);
    if (values !== shown) return;
    network.value = itsNetwork;
    const tokens = listTokens(known);
    token.replaceChildren(
      createElement("option", { value: "" }, "All tokens"),
      ...tokens.map((name) => createElement("option", { value: name }, name)),
    );
    const chosen = tokens.find((name) => name === values.get("token"));
    token.value = chosen ?? "";

    const parameters = { token: chosen ?? "", network: values.get("network") ?? "" };
    const message = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== ""));
    showCommands({
      curl: buildCurlCommand(location.origin, buildPath("/v1/available-routes", parameters)),
      grpcurl: buildGrpcurlCommand(location.origin, GRPC_METHOD, message),
    });
    const listed = chosen === undefined ? tokens : [chosen];
    const size = (name: string): number => known.filter((route) => route.token === name).length;
    const count = listed.reduce((sum, name) => sum + size(name), 0);
    const text = `${count} routes of ${listed.length === 1 ? listed[0] : `${listed.length} tokens`}`;
    said.textContent = `${text}. A dot is a route: it leads to its quote.`;
    // Large beside large: they fill the page better.
    const ordered = listed.toSorted((a, b) => size(b) - size(a));
    answer.replaceChildren(...ordered.map((name) => renderRouteTable(known, name, values)));
  }

  function show(values: ViewParameters): void {
    shown = values;
    showRoutes(values).catch((error: unknown) => {
      if (values === shown) answer.replaceChildren(createErrorBox(error, () => show(values)));
    });
  }

  return {
    show,
    hide() {
      shown = new Map();
    },
  };
}

/** @param routes all that the network has, so that chains stand in the same order in every table */
function renderRouteTable(routes: readonly Route[], token: string, values: ViewParameters): HTMLElement {
  const chains = listChains(routes);
  const sources = listSourceChains(routes, token);
  const destinations = listDestinationChains(routes, token);
  const columns = chains.filter((slug) => destinations.includes(slug));
  const rows = chains.filter((slug) => sources.includes(slug));
  const corner = createElement("td", {}, createElement("span", { class: "unseen" }, "From, to"));
  const heads = columns.map((to) =>
    createElement("th", { scope: "col" }, createElement("span", {}, formatChainName(to))),
  );
  const body = rows.map((from) => {
    const cells = columns.map((to) => createElement("td", {}, renderRouteCell(routes, { token, from, to }, values)));
    return createElement("tr", {}, createElement("th", { scope: "row" }, formatChainName(from)), ...cells);
  });
  const table = createElement(
    "table",
    {},
    createElement("caption", {}, token),
    createElement("thead", {}, createElement("tr", {}, corner, ...heads)),
    createElement("tbody", {}, ...body),
  );
  return createElement("div", { class: "card matrix" }, table);
}

function renderRouteCell(
  routes: readonly Route[],
  choice: { token: string; from: string; to: string },
  values: ViewParameters,
): Node {
  const { token, from, to } = choice;
  if (!hasRoute(routes, choice)) return createElement("span", { class: "unseen" }, "no route");
  const name = `Quote ${token} from ${formatChainName(from)} to ${formatChainName(to)}`;
  const target = new Map(Object.entries({ token, from, to, network: values.get("network") ?? "" }));
  return createElement("a", {
    href: formatHash({ view: "quote", parameters: target }),
    "aria-label": name,
    title: name,
  });
}
