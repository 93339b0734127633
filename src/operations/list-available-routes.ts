import { create } from "@bufbuild/protobuf";
import {
  type ListAvailableRoutesRequest,
  type ListAvailableRoutesResponse,
  ListAvailableRoutesResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import { availableRoutes } from "../routes/available-routes.js";
import type { Operation } from "./operation.js";
import { parseChain, parseNetwork, parseRpcUrls, parseToken } from "./parameters.js";

export function createListAvailableRoutes(deps: {
  readonly settings: FeeSettingsSource;
}): Operation<ListAvailableRoutesRequest, ListAvailableRoutesResponse> {
  return async (request, context) => {
    const network = parseNetwork(request.network);
    context.note({ network: network.slug });
    const token = request.token === "" ? undefined : parseToken(network, request.token);
    const from = request.fromChain === "" ? undefined : parseChain(network, "fromChain", request.fromChain);
    const to = request.toChain === "" ? undefined : parseChain(network, "toChain", request.toChain);
    parseRpcUrls(network, request.rpcUrl);

    const routes = availableRoutes(network, await deps.settings.bestKnown(network.slug)).filter(
      (route) =>
        (token === undefined || route.token === token.symbol) &&
        (from === undefined || route.source === from) &&
        (to === undefined || route.destination === to),
    );
    return create(ListAvailableRoutesResponseSchema, {
      routes: routes.map(({ token: symbol, source, destination }) => ({
        token: symbol,
        sourceChainSlug: source.slug,
        sourceChainId: source.chainId,
        destinationChainSlug: destination.slug,
        destinationChainId: destination.chainId,
      })),
    });
  };
}
