import type { ApiResponse } from "../shared/api/api-client.js";
import type { ChainReadiness, ReadinessResponse, SourceReadiness } from "../shared/api/api-types.js";
import { createElement } from "../shared/elements/dom.js";
import { createAge, createDescription, createNote } from "../shared/elements/value-elements.js";
import { formatChainName } from "../shared/format/chain-names.js";

const STATUS_TEXTS: Readonly<Record<string, string>> = {
  ready: "All sources respond.",
  degraded: "Not everything works. Requests that do not need what fails are served.",
  unready: "The service does not accept requests.",
};

const SOURCE_LABELS: Readonly<Record<string, string>> = {
  settings_mainnet: "Fee settings of mainnet",
  settings_goerli: "Fee settings of goerli",
  prices: "Token prices",
  chainlink_ethereum: "Price feeds on Ethereum",
  chainlink_arbitrum: "Price feeds on Arbitrum",
  explorer: "Explorer API",
  attestations: "CCTP attestations",
};

/** Describes the service's status in one or two sentences. */
export function describeReadiness({ status, reason }: ReadinessResponse): string {
  const cause = reason === undefined ? "" : ` ${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
  return `${STATUS_TEXTS[status] ?? ""}${cause}`;
}

/** Renders the status, a card for every chain grouped by network, and the other sources. */
export function renderReadiness({ body, receivedAtMs }: ApiResponse<ReadinessResponse>): readonly HTMLElement[] {
  const elements: HTMLElement[] = [
    createElement("p", { class: "summary" }, renderState(body.status), " ", describeReadiness(body)),
  ];
  for (const network of new Set(body.chains.map((chain) => chain.network))) {
    const chains = body.chains.filter((chain) => chain.network === network);
    // The index covers mainnet only.
    const getLag = (slug: string): number | undefined =>
      network === "mainnet" ? body.index?.find(({ chain }) => chain === slug)?.lagBlocks : undefined;
    const cards = chains.map((chain) => renderChainCard(chain, getLag(chain.chain), receivedAtMs));
    const title = `Chains of ${network}`;
    elements.push(createElement("h2", {}, title), createElement("ul", { class: "cards" }, ...cards));
  }
  const sources = body.sources.map((source) => renderSource(source, receivedAtMs));
  if (sources.length > 0)
    elements.push(createElement("h2", {}, "Other sources"), createElement("ul", { class: "sources" }, ...sources));
  return elements;
}

function renderChainCard(chain: ChainReadiness, lagBlocks: number | undefined, receivedAtMs: number): HTMLElement {
  const { head } = chain;
  const endpoints = chain.endpoints.map(({ endpoint, state }) =>
    createElement("span", { class: "endpoint" }, createElement("code", {}, endpoint), " ", renderState(state)),
  );
  const descriptions = [
    head === undefined
      ? createDescription("Head", ["head"], createNote("not known yet"))
      : [
          ...createDescription("Head", ["head.number"], createElement("span", {}, head.number.toLocaleString("en"))),
          ...createDescription("Age", ["head.ageSeconds"], createAge(receivedAtMs - head.ageSeconds * 1000)),
        ],
    createDescription(endpoints.length === 1 ? "Endpoint" : "Endpoints", ["endpoints"], ...endpoints),
    chain.cctpBurnLimitUsdc === undefined
      ? []
      : createDescription(
          "USDC per transfer",
          ["cctpBurnLimitUsdc"],
          createElement("span", {}, `${chain.cctpBurnLimitUsdc.toLocaleString("en")} at most`),
        ),
    lagBlocks === undefined
      ? []
      : createDescription(
          "Index",
          ["index.lagBlocks"],
          createElement("span", {}, lagBlocks === 1 ? "1 block behind" : `${lagBlocks} blocks behind`),
        ),
  ];
  const title = createElement("h3", {}, formatChainName(chain.chain), " ", createNote(`chain ${chain.chainId}`));
  return createElement(
    "li",
    {},
    createElement("div", { class: "card-head" }, title, renderState(chain.state)),
    createElement("dl", {}, ...descriptions.flat()),
  );
}

function renderSource({ source, state, ageSeconds }: SourceReadiness, receivedAtMs: number): HTMLElement {
  const age = ageSeconds === undefined ? [] : [createAge(receivedAtMs - ageSeconds * 1000), " old"];
  return createElement(
    "li",
    {},
    createElement("span", {}, SOURCE_LABELS[source] ?? source),
    renderState(state),
    createNote(...age),
  );
}

/** Renders a state as its name on a colour. */
function renderState(state: string): HTMLElement {
  return createElement("span", { class: "state", "data-state": state }, state);
}
