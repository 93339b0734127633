import { create } from "@bufbuild/protobuf";
import {
  type ListAvailableRoutesRequest,
  type ListAvailableRoutesResponse,
  ListAvailableRoutesResponseSchema,
  type Route,
  RouteSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Network } from "../hop/networks.js";
import { availableRoutes } from "../routes/available-routes.js";
import type { Operation } from "./operation.js";
import { parseChain, parseNetwork, parseRpcUrls, parseToken } from "./parameters.js";

export function createListAvailableRoutes(deps: {
  readonly settings: FeeSettingsSource;
}): Operation<ListAvailableRoutesRequest, ListAvailableRoutesResponse> {
  /** Routes change with the settings of their network and with nothing else. */
  const routesBySettings = new WeakMap<FeeSettings, readonly Route[]>();

  function routesOf(network: Network, settings: FeeSettings): readonly Route[] {
    const known = routesBySettings.get(settings);
    if (known !== undefined) return known;
    const routes = availableRoutes(network, settings).map(({ token, source, destination }) =>
      create(RouteSchema, {
        token,
        sourceChainSlug: source.slug,
        sourceChainId: source.chainId,
        destinationChainSlug: destination.slug,
        destinationChainId: destination.chainId,
      }),
    );
    routesBySettings.set(settings, routes);
    return routes;
  }

  return async (request, context) => {
    const network = parseNetwork(request.network);
    context.note({ network: network.slug });
    const token = request.token === "" ? undefined : parseToken(network, request.token);
    const from = request.fromChain === "" ? undefined : parseChain(network, "fromChain", request.fromChain);
    const to = request.toChain === "" ? undefined : parseChain(network, "toChain", request.toChain);
    parseRpcUrls(network, request.rpcUrl);

    const routes = routesOf(network, await deps.settings.bestKnown(network.slug)).filter(
      (route) =>
        (token === undefined || route.token === token.symbol) &&
        (from === undefined || route.sourceChainSlug === from.slug) &&
        (to === undefined || route.destinationChainSlug === to.slug),
    );
    return create(ListAvailableRoutesResponseSchema, { routes });
  };
}
