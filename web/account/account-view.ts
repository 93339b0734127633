import { ApiError } from "../shared/api/api-client.js";
import { buildPath } from "../shared/api/build-path.js";
import type { LoadDecimals, LoadRoutes } from "../shared/api/cached-loaders.js";
import { getNetwork } from "../shared/api/network.js";
import { listDestinationChains, listSourceChains, listTokens, type Route } from "../shared/api/route-selection.js";
import { buildCurlCommand, buildGrpcurlCommand, GRPC_METHODS } from "../shared/api/shell-commands.js";
import { createCommandBox } from "../shared/elements/command-box.js";
import { createElement, getElement, selectOption } from "../shared/elements/dom.js";
import { createSearchForm } from "../shared/elements/search-form.js";
import { createStreamNote } from "../shared/elements/stream-note.js";
import { formatChainName } from "../shared/format/chain-names.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import type { Navigate, View } from "../shared/navigation/view.js";
import { type AccountQuery, toAccountQuery, toViewParameters } from "./account-query.js";
import { followAccount, PAGE_SIZE, renderListError } from "./follow-account.js";

/** Lists the transfers that an account sent or receives, newest first, with live states. */
export function createAccountView({
  loadRoutes,
  loadDecimals,
  navigate,
}: {
  loadRoutes: LoadRoutes;
  loadDecimals: LoadDecimals;
  navigate: Navigate;
}): View {
  const state = getElement("account-state", HTMLSelectElement);
  const token = getElement("account-token", HTMLSelectElement);
  const from = getElement("account-from", HTMLSelectElement);
  const to = getElement("account-to", HTMLSelectElement);
  const answer = getElement("account-answer", HTMLElement);
  const announcement = getElement("account-announcement", HTMLElement);
  const note = createStreamNote(getElement("account-stream", HTMLElement));
  const showCommands = createCommandBox(getElement("account-terminal", HTMLElement));
  const form = createSearchForm({
    view: "account",
    filters: [state, token, from, to],
    onSubmit(account, network) {
      const filters = { state: state.value, token: token.value, fromChain: from.value, toChain: to.value };
      navigate({ view: "account", parameters: toViewParameters({ account, ...filters, network }) }, "push");
    },
  });
  let current: AbortController | undefined;

  /** Offers what the routes of the network have, and always what the query has. */
  function fillFilters({ token: tokenSymbol, fromChain, toChain }: AccountQuery, routes: readonly Route[]): void {
    const tokens = listTokens(routes);
    const sources = tokens.flatMap((name) => listSourceChains(routes, name));
    const destinations = tokens.flatMap((name) => listDestinationChains(routes, name));
    fillSelect(token, "Any token", tokens, tokenSymbol, (name) => name);
    fillSelect(from, "Any chain", sources, fromChain, formatChainName);
    fillSelect(to, "Any chain", destinations, toChain, formatChainName);
  }

  function showQuery(query: AccountQuery): void {
    const { origin } = location;
    const entries = Object.entries(query).filter(([, value]) => value !== "");
    const message = { ...Object.fromEntries(entries), pageSize: PAGE_SIZE };
    showCommands({
      curl: buildCurlCommand(origin, buildPath("/v1/transfers", { ...query, pageSize: String(PAGE_SIZE) })),
      grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.listTransfers, message),
    });
  }

  async function showTransfers(query: AccountQuery, signal: AbortSignal, onRetry: () => void): Promise<void> {
    // Without decimals, amounts are shown in the smallest unit.
    const getDecimals = await loadDecimals().catch(() => () => undefined);
    signal.throwIfAborted();
    await followAccount({
      query,
      getDecimals,
      signal,
      onAnswer: (...elements) => answer.replaceChildren(...elements),
      onAnnounce: (message) => {
        announcement.textContent = message;
      },
      onState: (streamState) => note.show(streamState, onRetry),
      onFailure: (message) => note.showFailure(message),
    });
  }

  function showError(error: unknown, onRetry: () => void): void {
    const message = (error as Error).message;
    if (error instanceof ApiError && error.field === "account") form.showError(message);
    answer.replaceChildren(renderListError(error, onRetry));
    announcement.textContent = message;
  }

  function show(parameters: ViewParameters): void {
    current?.abort();
    current = new AbortController();
    const { signal } = current;
    const query = toAccountQuery(parameters);
    const networkName = getNetwork(parameters);
    form.fill(query.account, networkName);
    selectOption(state, query.state);
    fillFilters(query, []);
    loadRoutes(networkName).then(
      (routes) => {
        if (!signal.aborted) fillFilters(query, routes);
      },
      // The filters that are set stay.
      () => {},
    );
    announcement.textContent = "";
    note.clear();
    if (query.account === "") {
      showCommands({});
      const hint = "Enter an address. The transfers that it sent or receives are listed, newest first.";
      answer.replaceChildren(createElement("p", { class: "empty" }, hint));
      return;
    }
    showQuery(query);
    answer.replaceChildren(createElement("p", { class: "empty loading" }, "Loading…"));
    const onRetry = (): void => show(parameters);
    showTransfers(query, signal, onRetry).catch((error: unknown) => {
      if (!signal.aborted) showError(error, onRetry);
    });
  }

  return { show, hide: () => current?.abort() };
}

function fillSelect(
  select: HTMLSelectElement,
  anyLabel: string,
  values: readonly string[],
  selected: string,
  format: (value: string) => string,
): void {
  const offered = new Set([...values, ...(selected === "" ? [] : [selected])]);
  const options = [...offered].map((value) => createElement("option", { value }, format(value)));
  select.replaceChildren(createElement("option", { value: "" }, anyLabel), ...options);
  select.value = selected;
}
