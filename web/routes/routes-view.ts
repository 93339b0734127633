import { pathOf } from "../shared/api-client.js";
import type { RouteBook } from "../shared/cached-loaders.js";
import { chainName } from "../shared/chain-names.js";
import { createTerminalBox } from "../shared/command-box.js";
import { find, make } from "../shared/dom.js";
import { problemBox } from "../shared/error-box.js";
import { printPlace, type Values } from "../shared/location-hash.js";
import { chainsOf, destinationsOf, isRoute, type Route, sourcesOf, tokensOf } from "../shared/route-selection.js";
import { curlCommand, grpcurlCommand } from "../shared/shell-commands.js";
import type { Go, View } from "../shared/view.js";

const method = "hop.bridge.v1.BridgeService/ListAvailableRoutes";

/** Which token goes from where to where: a table for each, with the quote behind each route. */
export function createRoutesView({ routes, go }: { routes: RouteBook; go: Go }): View {
  const answer = find("routes-answer", HTMLElement);
  const said = find("routes-said", HTMLElement);
  const token = find("routes-token", HTMLSelectElement);
  const network = find("routes-network", HTMLSelectElement);
  const showCommands = createTerminalBox(find("routes-terminal", HTMLElement));
  let shown: Values = new Map();

  for (const select of [token, network]) {
    select.addEventListener("change", () => {
      const values = { token: token.value, network: network.value === "mainnet" ? "" : network.value };
      go({ view: "routes", values: new Map(Object.entries(values)) }, "push");
    });
  }

  async function showRoutes(values: Values): Promise<void> {
    const itsNetwork = values.get("network") ?? "mainnet";
    const known = await routes(itsNetwork);
    if (values !== shown) return;
    network.value = itsNetwork;
    const tokens = tokensOf(known);
    token.replaceChildren(
      make("option", { value: "" }, "All tokens"),
      ...tokens.map((name) => make("option", { value: name }, name)),
    );
    const chosen = tokens.find((name) => name === values.get("token"));
    token.value = chosen ?? "";

    const parameters = { token: chosen ?? "", network: values.get("network") ?? "" };
    const message = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== ""));
    showCommands({
      curl: curlCommand(location.origin, pathOf("/v1/available-routes", parameters)),
      grpcurl: grpcurlCommand(location.origin, method, message),
    });
    const listed = chosen === undefined ? tokens : [chosen];
    const size = (name: string): number => known.filter((route) => route.token === name).length;
    const count = listed.reduce((sum, name) => sum + size(name), 0);
    const text = `${count} routes of ${listed.length === 1 ? listed[0] : `${listed.length} tokens`}`;
    said.textContent = `${text}. A dot is a route: it leads to its quote.`;
    // Large beside large: they fill the page better.
    const ordered = listed.toSorted((a, b) => size(b) - size(a));
    answer.replaceChildren(...ordered.map((name) => matrix(known, name, values)));
  }

  function show(values: Values): void {
    shown = values;
    showRoutes(values).catch((error: unknown) => {
      if (values === shown) answer.replaceChildren(problemBox(error, () => show(values)));
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
function matrix(routes: readonly Route[], token: string, values: Values): HTMLElement {
  const chains = chainsOf(routes);
  const sources = sourcesOf(routes, token);
  const destinations = destinationsOf(routes, token);
  const columns = chains.filter((slug) => destinations.includes(slug));
  const rows = chains.filter((slug) => sources.includes(slug));
  const corner = make("td", {}, make("span", { class: "unseen" }, "From, to"));
  const heads = columns.map((to) => make("th", { scope: "col" }, make("span", {}, chainName(to))));
  const body = rows.map((from) => {
    const cells = columns.map((to) => make("td", {}, cell(routes, { token, from, to }, values)));
    return make("tr", {}, make("th", { scope: "row" }, chainName(from)), ...cells);
  });
  const table = make(
    "table",
    {},
    make("caption", {}, token),
    make("thead", {}, make("tr", {}, corner, ...heads)),
    make("tbody", {}, ...body),
  );
  return make("div", { class: "card matrix" }, table);
}

function cell(routes: readonly Route[], choice: { token: string; from: string; to: string }, values: Values): Node {
  const { token, from, to } = choice;
  if (!isRoute(routes, choice)) return make("span", { class: "unseen" }, "no route");
  const name = `Quote ${token} from ${chainName(from)} to ${chainName(to)}`;
  const target = new Map(Object.entries({ token, from, to, network: values.get("network") ?? "" }));
  return make("a", { href: printPlace({ view: "quote", values: target }), "aria-label": name, title: name });
}
