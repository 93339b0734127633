import { create } from "@bufbuild/protobuf";
import {
  type ListAvailableRoutesRequest,
  type ListAvailableRoutesResponse,
  ListAvailableRoutesResponseSchema,
  RouteContractsSchema,
  RouteDetailsSchema,
  type Route as RouteMessage,
  RouteSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Network } from "../hop/networks.js";
import { getTokenDecimals } from "../hop/tokens.js";
import { findAvailableRoutes, type Route } from "../routes/available-routes.js";
import { getRouteContracts } from "../routes/route-contracts.js";
import type { CachePolicy, Operation } from "./operation.js";
import { parseChain, parseIsFullView, parseNetwork, parseRpcUrls, parseToken } from "./parameters.js";

/** Routes only change with the fee settings, which is rare. */
const CACHE_POLICY: CachePolicy = { ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 };

interface RouteFilter {
  readonly token: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly isFull: boolean;
}

export function createListAvailableRoutes(deps: {
  readonly settings: FeeSettingsSource;
}): Operation<ListAvailableRoutesRequest, ListAvailableRoutesResponse> {
  /** Responses only depend on the settings of their network. */
  const respondersBySettings = new WeakMap<FeeSettings, RouteListResponder>();

  function respond(network: Network, settings: FeeSettings, filter: RouteFilter): ListAvailableRoutesResponse {
    let responder = respondersBySettings.get(settings);
    if (responder === undefined) {
      responder = createRouteListResponder(network, settings);
      respondersBySettings.set(settings, responder);
    }
    return responder(filter);
  }

  return (request, context) => {
    const network = parseNetwork(request.network);
    context.addLogFields({ network: network.slug });
    const filter: RouteFilter = {
      token: request.token === "" ? undefined : parseToken(network, request.token).symbol,
      from: request.fromChain === "" ? undefined : parseChain(network, "fromChain", request.fromChain).slug,
      to: request.toChain === "" ? undefined : parseChain(network, "toChain", request.toChain).slug,
      isFull: parseIsFullView(request.view),
    };
    parseRpcUrls(network, request.rpcUrl);
    context.setCachePolicy(CACHE_POLICY);
    const cachedSettings = deps.settings.peek(network.slug);
    if (cachedSettings !== undefined) return respond(network, cachedSettings, filter);
    return deps.settings.getCurrentOrBuiltIn(network.slug).then((settings) => respond(network, settings, filter));
  };
}

type RouteListResponder = (filter: RouteFilter) => ListAvailableRoutesResponse;

/**
 * Memoizes the responses of one network under one version of its settings. They are frozen, so that transports can memoize
 * their serialized form.
 */
function createRouteListResponder(network: Network, settings: FeeSettings): RouteListResponder {
  const routes = findAvailableRoutes(network, settings);
  const basicRoutes = routes.map((route) => Object.freeze(createRoute(route)));
  let fullRoutes: readonly RouteMessage[] | undefined;
  function getFullRoutes(): readonly RouteMessage[] {
    fullRoutes ??= routes.map((route) => createFullRoute(network, route));
    return fullRoutes;
  }
  /** Bounded by 2 * tokens * chains * chains, since a filter only contains tokens and chains of the network. */
  const responses = new Map<string, ListAvailableRoutesResponse>();
  return ({ token, from, to, isFull }) => {
    const key = `${token ?? ""} ${from ?? ""} ${to ?? ""} ${isFull}`;
    const memoized = responses.get(key);
    if (memoized !== undefined) return memoized;
    const matches = (isFull ? getFullRoutes() : basicRoutes).filter(
      (route) =>
        (token === undefined || route.token === token) &&
        (from === undefined || route.sourceChainSlug === from) &&
        (to === undefined || route.destinationChainSlug === to),
    );
    const response = create(ListAvailableRoutesResponseSchema, { routes: matches });
    Object.freeze(response.routes);
    responses.set(key, Object.freeze(response));
    return response;
  };
}

function createRoute({ token, source, destination }: Route): RouteMessage {
  return create(RouteSchema, {
    token,
    sourceChainSlug: source.slug,
    sourceChainId: source.chainId,
    destinationChainSlug: destination.slug,
    destinationChainId: destination.chainId,
  });
}

/** Returns a deeply frozen route with details. */
function createFullRoute(network: Network, route: Route): RouteMessage {
  const { token, source, destination } = route;
  const message = createRoute(route);
  message.details = Object.freeze(
    create(RouteDetailsSchema, {
      source: Object.freeze(create(RouteContractsSchema, getRouteContracts(network, token, source))),
      destination: Object.freeze(create(RouteContractsSchema, getRouteContracts(network, token, destination))),
      decimals: getTokenDecimals(token),
    }),
  );
  return Object.freeze(message);
}
