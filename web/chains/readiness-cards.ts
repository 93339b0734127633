import type { Answer } from "../shared/api-client.js";
import type { ChainReadiness, Readiness, SourceReadiness } from "../shared/api-types.js";
import { chainName } from "../shared/chain-names.js";
import { make } from "../shared/dom.js";
import { ageText, fact, note } from "../shared/value-elements.js";

const meanings: Readonly<Record<string, string>> = {
  ready: "Everything asked so far answers.",
  degraded: "It serves what it can.",
  unready: "It takes no requests.",
};

const sourceNames: Readonly<Record<string, string>> = {
  settings_mainnet: "Fee settings of mainnet",
  settings_goerli: "Fee settings of goerli",
  prices: "Token prices",
  explorer: "Explorer API",
  attestations: "CCTP attestations",
};

/** How the service is, in a few words. */
export function readinessSaid({ status, reason }: Readiness): string {
  const why = reason === undefined ? "" : ` ${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
  return `${meanings[status] ?? ""}${why}`;
}

/** A card for each chain, by network, and what else the service reads. */
export function readinessCards({ body, at }: Answer<Readiness>): readonly HTMLElement[] {
  const parts: HTMLElement[] = [make("p", { class: "summary" }, state(body.status), " ", readinessSaid(body))];
  for (const network of new Set(body.chains.map((chain) => chain.network))) {
    const chains = body.chains.filter((chain) => chain.network === network);
    const lagOf = (chain: string): number | undefined =>
      network === "mainnet" ? body.index?.find((each) => each.chain === chain)?.lagBlocks : undefined;
    const cards = chains.map((chain) => chainCard(chain, lagOf(chain.chain), at));
    const title = `Chains of ${network}`;
    parts.push(make("h2", {}, title), make("ul", { class: "cards" }, ...cards));
  }
  const sources = body.sources.map((source) => sourceLine(source, at));
  if (sources.length > 0) parts.push(make("h2", {}, "Other sources"), make("ul", { class: "sources" }, ...sources));
  return parts;
}

function chainCard(chain: ChainReadiness, lagBlocks: number | undefined, at: number): HTMLElement {
  const { head } = chain;
  const unknown = (): HTMLElement => note("not known yet");
  const endpoints = chain.endpoints.map((each) =>
    make("span", { class: "endpoint" }, make("code", {}, each.endpoint), " ", state(each.state)),
  );
  const facts = [
    fact("Head", undefined, head === undefined ? unknown() : make("span", {}, head.number.toLocaleString("en"))),
    fact("Age", undefined, head === undefined ? unknown() : ageText(at - head.ageSeconds * 1000)),
    fact(endpoints.length === 1 ? "Endpoint" : "Endpoints", undefined, ...endpoints),
    lagBlocks === undefined ? [] : fact("Index", undefined, make("span", {}, `${lagBlocks} blocks behind`)),
  ];
  const title = make("h3", {}, chainName(chain.chain), " ", note(`chain ${chain.chainId}`));
  return make(
    "li",
    {},
    make("div", { class: "card-head" }, title, state(chain.state)),
    make("dl", {}, ...facts.flat()),
  );
}

function sourceLine({ source, state: word, ageSeconds }: SourceReadiness, at: number): HTMLElement {
  const age = ageSeconds === undefined ? [] : [ageText(at - ageSeconds * 1000), " old"];
  return make("li", {}, make("span", {}, sourceNames[source] ?? source), state(word), note(...age));
}

/** A state, as the word that it is and a colour. */
function state(word: string): HTMLElement {
  return make("span", { class: "state", "data-state": word }, word);
}
