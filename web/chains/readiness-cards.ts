import type { ApiResponse } from "../shared/api-client.js";
import type { ChainReadiness, ReadinessResponse, SourceReadiness } from "../shared/api-types.js";
import { formatChainName } from "../shared/chain-names.js";
import { createElement } from "../shared/dom.js";
import { createAge, createDescription, createNote } from "../shared/value-elements.js";

const STATUS_TEXTS: Readonly<Record<string, string>> = {
  ready: "Everything asked so far answers.",
  degraded: "It serves what it can.",
  unready: "It takes no requests.",
};

const SOURCE_LABELS: Readonly<Record<string, string>> = {
  settings_mainnet: "Fee settings of mainnet",
  settings_goerli: "Fee settings of goerli",
  prices: "Token prices",
  explorer: "Explorer API",
  attestations: "CCTP attestations",
};

/** How the service is, in a few words. */
export function describeReadiness({ status, reason }: ReadinessResponse): string {
  const why = reason === undefined ? "" : ` ${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
  return `${STATUS_TEXTS[status] ?? ""}${why}`;
}

/** A card for each chain, by network, and what else the service reads. */
export function renderReadiness({ body, receivedAtMs }: ApiResponse<ReadinessResponse>): readonly HTMLElement[] {
  const parts: HTMLElement[] = [
    createElement("p", { class: "summary" }, renderState(body.status), " ", describeReadiness(body)),
  ];
  for (const network of new Set(body.chains.map((chain) => chain.network))) {
    const chains = body.chains.filter((chain) => chain.network === network);
    const lagOf = (chain: string): number | undefined =>
      network === "mainnet" ? body.index?.find((each) => each.chain === chain)?.lagBlocks : undefined;
    const cards = chains.map((chain) => renderChainCard(chain, lagOf(chain.chain), receivedAtMs));
    const title = `Chains of ${network}`;
    parts.push(createElement("h2", {}, title), createElement("ul", { class: "cards" }, ...cards));
  }
  const sources = body.sources.map((source) => renderSource(source, receivedAtMs));
  if (sources.length > 0)
    parts.push(createElement("h2", {}, "Other sources"), createElement("ul", { class: "sources" }, ...sources));
  return parts;
}

function renderChainCard(chain: ChainReadiness, lagBlocks: number | undefined, at: number): HTMLElement {
  const { head } = chain;
  const unknown = (): HTMLElement => createNote("not known yet");
  const endpoints = chain.endpoints.map((each) =>
    createElement(
      "span",
      { class: "endpoint" },
      createElement("code", {}, each.endpoint),
      " ",
      renderState(each.state),
    ),
  );
  const facts = [
    createDescription(
      "Head",
      undefined,
      head === undefined ? unknown() : createElement("span", {}, head.number.toLocaleString("en")),
    ),
    createDescription("Age", undefined, head === undefined ? unknown() : createAge(at - head.ageSeconds * 1000)),
    createDescription(endpoints.length === 1 ? "Endpoint" : "Endpoints", undefined, ...endpoints),
    lagBlocks === undefined
      ? []
      : createDescription("Index", undefined, createElement("span", {}, `${lagBlocks} blocks behind`)),
  ];
  const title = createElement("h3", {}, formatChainName(chain.chain), " ", createNote(`chain ${chain.chainId}`));
  return createElement(
    "li",
    {},
    createElement("div", { class: "card-head" }, title, renderState(chain.state)),
    createElement("dl", {}, ...facts.flat()),
  );
}

function renderSource({ source, state: word, ageSeconds }: SourceReadiness, at: number): HTMLElement {
  const age = ageSeconds === undefined ? [] : [createAge(at - ageSeconds * 1000), " old"];
  return createElement(
    "li",
    {},
    createElement("span", {}, SOURCE_LABELS[source] ?? source),
    renderState(word),
    createNote(...age),
  );
}

/** A state, as the word that it is and a colour. */
function renderState(word: string): HTMLElement {
  return createElement("span", { class: "state", "data-state": word }, word);
}
