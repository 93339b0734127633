import {
  type BatchGetQuotesRequest,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { FeeSettingsSource } from "../../hop/fee-settings-source.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import { findAvailableRoutes } from "../../routes/available-routes.js";
import {
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseSlippage,
  parseToken,
  requireParameter,
} from "../parameters.js";

export const MAX_QUOTES_PER_BATCH = 100;

/**
 * Returns the requests of a batch, in the order of their results. What all of them share is valid in them.
 * @throws ServiceError for what fails the whole batch
 */
export function listQuoteRequests(
  message: BatchGetQuotesRequest,
  settings: Pick<FeeSettingsSource, "peek" | "getCurrentOrBuiltIn">,
): MaybePromise<readonly GetQuoteRequest[]> {
  if (message.requests.length > 0) return listGivenRequests(message);
  const amounts = message.amount;
  if (isNotGiven(amounts)) throw new ServiceError("MISSING_PARAMETER", "amount is required", { field: "amount" });
  const network = parseNetwork(message.network);
  const token = parseToken(network, requireParameter("token", message.token));
  const source = parseChain(network, "fromChain", requireParameter("fromChain", message.fromChain));
  parseSlippage(message.slippage);
  parseIsFullView(message.view);
  if (!isNotGiven(message.toChain)) return pairUp(message, message.toChain);
  const current = settings.peek(network.slug) ?? settings.getCurrentOrBuiltIn(network.slug);
  return mapMaybeAsync(current, (feeSettings) => {
    const routes = findAvailableRoutes(network, feeSettings);
    const reachable = routes.filter((route) => route.token === token.symbol && route.source === source);
    return pairUp(
      message,
      reachable.map(({ destination }) => destination.slug),
    );
  });
}

/** Returns whether a list is empty, or holds nothing but empty texts, as `amount=` does. */
function isNotGiven(values: readonly string[]): boolean {
  return values.every((value) => value === "");
}

function listGivenRequests(message: BatchGetQuotesRequest): readonly GetQuoteRequest[] {
  const { requests, amount, toChain, slippage } = message;
  const texts = [message.token, message.fromChain, message.network, message.view, ...amount, ...toChain];
  if (texts.some((text) => text !== "") || slippage !== undefined)
    throw createRequestsError("requests excludes all other parameters");
  if (requests.length > MAX_QUOTES_PER_BATCH)
    throw createRequestsError(`requests has more than ${MAX_QUOTES_PER_BATCH} items`);
  for (const [index, { rpcUrl }] of requests.entries())
    if (Object.keys(rpcUrl).length > 0)
      throw createRequestsError(`requests[${index}].rpcUrl is not supported in a batch: it reads the chains for all`);
  return requests;
}

function createRequestsError(message: string): ServiceError {
  return new ServiceError("INVALID_PARAMETER", message, { field: "requests" });
}

/** Returns a request for every pair of a destination and an amount; all amounts of the first destination come first. */
function pairUp(message: BatchGetQuotesRequest, toChains: readonly string[]): readonly GetQuoteRequest[] {
  const { amount: amounts, token, fromChain, slippage, network, view } = message;
  const count = toChains.length * amounts.length;
  if (count > MAX_QUOTES_PER_BATCH) {
    const pairs = `${toChains.length} destinations with ${amounts.length} amounts`;
    const problem = `${pairs} are ${count} quotes: at most ${MAX_QUOTES_PER_BATCH} can be requested at once`;
    throw new ServiceError("INVALID_PARAMETER", problem, { field: "amount" });
  }
  return toChains.flatMap((toChain) =>
    amounts.map((amount) => ({
      $typeName: GetQuoteRequestSchema.typeName,
      ...{ amount, token, fromChain, toChain, network, view },
      ...(slippage !== undefined && { slippage }),
      rpcUrl: {},
      receiveAmount: "",
    })),
  );
}
