import type { ListTransfersRequest, ListTransfersResponse } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import type { Network } from "../../hop/networks.js";
import type { PriceTable, TokenPrices } from "../../prices/token-prices.js";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { DetailsFinder } from "../../transfers/details/details-finder.js";
import type { DetailsOutcome } from "../../transfers/details/transfer-details.js";
import { decodePageToken, encodePageToken } from "../../transfers/index/list/page-token.js";
import type {
  ListCoverage,
  TransferFilter,
  TransferList,
  TransferLister,
} from "../../transfers/index/list/transfer-lister.js";
import type { TransferState } from "../../transfers/status.js";
import type { Operation } from "../operation.js";
import {
  parseAddress,
  parseChain,
  parseEnumValue,
  parseIsFullView,
  parseNetwork,
  parseToken,
  requireParameter,
} from "../parameters.js";
import {
  getUsdPriceOrZero,
  PRICE_TIMEOUT_MS,
  toTransferDetailsMessage,
  toTransferStatusMessage,
  warnOfMissingAttestations,
} from "./get-transfer-status.js";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;
/** Transfers of a page with details, which are read from the chains. */
const MAX_FULL_PAGE_SIZE = 100;
/** Transfers of a page that count as one request against the limit of a caller. */
const TRANSFERS_PER_REQUEST = 50;
const STATES: readonly TransferState[] = ["PENDING", "BONDED", "UNBONDABLE"];

/** What was read for a page. */
interface Answer {
  /** As `toQueryText` returns it. */
  readonly query: string;
  readonly list: TransferList;
  readonly coverage: ListCoverage;
}

export function createListTransfers(deps: {
  /** undefined: this server has no index. */
  readonly lister: Pick<TransferLister, "isIndexed" | "list" | "readCoverage"> | undefined;
  readonly chains: Pick<ChainClients, "forNetwork">;
  readonly details: Pick<DetailsFinder, "find">;
  /** undefined: the source is switched off. */
  readonly attestations: Pick<AttestationClient, "findOutage"> | undefined;
  readonly prices: Pick<TokenPrices, "peekTable" | "getTable">;
}): Operation<ListTransfersRequest, ListTransfersResponse> {
  const { lister, chains, details, attestations, prices } = deps;

  return (request, context) => {
    const network = parseNetwork(request.network);
    const filter = parseFilter(network, request);
    const pageSize = parsePageSize(request.pageSize);
    const isFull = parseIsFullView(request.view);
    const query = toQueryText(network, filter);
    const after = parsePageToken(query, request.pageToken);
    context.addLogFields({ network: network.slug });
    if (lister === undefined || !lister.isIndexed(network))
      throw new ServiceError("INDEX_REQUIRED", `this server has no index of transfers on ${network.slug}`);

    const remainingMs = (): number => context.remainingMs();
    const respond = (answer: Answer, outcomes: readonly DetailsOutcome[]): MaybePromise<ListTransfersResponse> => {
      context.addLogFields({ transfers: answer.list.transfers.length });
      // The list of an account changes at any moment.
      context.setCachePolicy("private");
      const timeoutMs = Math.min(PRICE_TIMEOUT_MS, Math.max(0, remainingMs() / 2));
      return mapMaybeAsync(getPrices(prices, answer.list, timeoutMs), (table) => toResponse(answer, outcomes, table));
    };
    const readDetails = (answer: Answer): MaybePromise<ListTransfersResponse> => {
      const { caller, signal } = context;
      const access = { chains: chains.forNetwork(network.slug), isPrivate: false };
      const lookup = { network, ...access, caller, signal, remainingMs };
      return mapMaybeAsync(details.find(answer.list.transfers, lookup), (outcomes) => {
        const read = outcomes.flatMap((outcome) => ("details" in outcome ? [outcome.details] : []));
        const warned = warnOfMissingAttestations(read, attestations, context);
        return mapMaybeAsync(warned, () => respond(answer, outcomes));
      });
    };
    const rows = isFull ? Math.min(pageSize, MAX_FULL_PAGE_SIZE) : pageSize;
    // Before the page: a block that is indexed in between would count as covered, and its transfers might be missing.
    const read = (): MaybePromise<ListTransfersResponse> =>
      mapMaybeAsync(lister.readCoverage(filter, context), (coverage) =>
        mapMaybeAsync(lister.list(filter, after, rows, context), (list) => {
          const answer = { query, list, coverage };
          return isFull ? readDetails(answer) : respond(answer, []);
        }),
      );
    const count = isFull ? rows : Math.ceil(rows / TRANSFERS_PER_REQUEST);
    const counted = count === 1 ? undefined : context.countAsRequests(count);
    return counted === undefined ? read() : counted.then(read);
  };
}

function parseFilter(network: Network, request: ListTransfersRequest): TransferFilter {
  const { state, token, fromChain, toChain } = request;
  return {
    account: parseAddress("account", requireParameter("account", request.account)),
    state: state === "" ? undefined : parseEnumValue("state", state, STATES),
    token: token === "" ? undefined : parseToken(network, token).symbol,
    source: fromChain === "" ? undefined : parseChain(network, "fromChain", fromChain),
    destination: toChain === "" ? undefined : parseChain(network, "toChain", toChain),
  };
}

function parsePageSize(value: number | undefined): number {
  if (value === undefined) return DEFAULT_PAGE_SIZE;
  if (value >= 1 && value <= MAX_PAGE_SIZE) return value;
  throw new ServiceError("INVALID_PARAMETER", `pageSize is not a whole number from 1 to ${MAX_PAGE_SIZE}`, {
    field: "pageSize",
  });
}

function parsePageToken(query: string, token: string): ReturnType<typeof decodePageToken> {
  if (token === "") return undefined;
  const position = decodePageToken(query, token);
  if (position !== undefined) return position;
  const message = "pageToken is not the nextPageToken of a page with the same account and filters";
  throw new ServiceError("INVALID_PARAMETER", message, { field: "pageToken" });
}

/** Returns text that is the same for queries with the same list. The size of the pages is no part of it. */
function toQueryText(network: Network, { account, state, token, source, destination }: TransferFilter): string {
  return [network.slug, account, state, token, source?.slug, destination?.slug].map((part) => part ?? "").join(" ");
}

/** Returns the prices of the listed tokens; undefined where they cannot be read, so that the USD fields are 0. */
function getPrices(
  prices: Pick<TokenPrices, "peekTable" | "getTable">,
  { transfers }: TransferList,
  timeoutMs: number,
): MaybePromise<PriceTable | undefined> {
  const tokens = [...new Set(transfers.map(({ sent }) => sent.token))];
  if (tokens.length === 0) return undefined;
  return prices.peekTable(tokens) ?? withTimeoutOrFallback(prices.getTable(tokens), timeoutMs, undefined);
}

/** @param outcomes details of the transfers; none for the basic view */
function toResponse(
  { query, list, coverage }: Answer,
  outcomes: readonly DetailsOutcome[],
  table: PriceTable | undefined,
): ListTransfersResponse {
  const pricesUsd = new Map<string, number>();
  const getPriceUsd = (token: string): number => {
    const price = pricesUsd.get(token) ?? (table === undefined ? 0 : getUsdPriceOrZero(table, token));
    pricesUsd.set(token, price);
    return price;
  };
  return {
    $typeName: "hop.bridge.v1.ListTransfersResponse",
    transfers: list.transfers.map((status, index) => {
      const message = toTransferStatusMessage(status, getPriceUsd(status.sent.token));
      const outcome = outcomes[index];
      if (outcome === undefined) return message;
      if ("error" in outcome) throw outcome.error;
      return { ...message, details: toTransferDetailsMessage(outcome.details) };
    }),
    nextPageToken: list.next === undefined ? "" : encodePageToken(query, list.next),
    coveredFrom: BigInt(coverage.fromSeconds),
    coveredUntil: BigInt(coverage.untilSeconds),
  };
}
