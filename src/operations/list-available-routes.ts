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
import type { FeeSettings, FeeSettingsSource } from "../hop/fee-settings.js";
import type { Network } from "../hop/networks.js";
import { findAvailableRoutes, getRouteContracts, type Route } from "../hop/routes.js";
import { getTokenDecimals } from "../hop/tokens.js";
import type { CachePolicy, Operation } from "./operation.js";
import { parseChain, parseIsFullView, parseNetwork, parseRpcUrls, parseToken } from "./parameters.js";

/** Routes only change with the fee settings, which is rare. */
const CACHE_POLICY: CachePolicy = { ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 };

export function createListAvailableRoutes(deps: {
  readonly settings: Pick<FeeSettingsSource, "peek" | "getCurrentOrBuiltIn">;
}): Operation<ListAvailableRoutesRequest, ListAvailableRoutesResponse> {
  /** Responses only depend on the settings of their network. */
  const listsBySettings = new WeakMap<FeeSettings, RouteList>();

  function getList(network: Network, settings: FeeSettings): RouteList {
    const list = listsBySettings.get(settings) ?? new RouteList(network, settings);
    listsBySettings.set(settings, list);
    return list;
  }

  return (request, context) => {
    const network = parseNetwork(request.network);
    context.addLogFields({ network: network.slug });
    const filter = {
      token: request.token === "" ? undefined : parseToken(network, request.token).symbol,
      from: request.fromChain === "" ? undefined : parseChain(network, "fromChain", request.fromChain).slug,
      to: request.toChain === "" ? undefined : parseChain(network, "toChain", request.toChain).slug,
      isFull: parseIsFullView(request.view),
    };
    parseRpcUrls(network, request.rpcUrl);
    context.setCachePolicy(CACHE_POLICY);
    const cachedSettings = deps.settings.peek(network.slug);
    if (cachedSettings !== undefined) return getList(network, cachedSettings).respond(filter);
    return deps.settings
      .getCurrentOrBuiltIn(network.slug)
      .then((settings) => getList(network, settings).respond(filter));
  };
}

/**
 * Memoizes the responses of one network under one version of its settings. They are frozen, so that transports can memoize
 * their serialized form.
 */
class RouteList {
  readonly #network: Network;
  readonly #routes: readonly Route[];
  readonly #basicMessages: readonly RouteMessage[];
  #fullMessages: readonly RouteMessage[] | undefined = undefined;
  /** Bounded by 2 * tokens * chains * chains, since a filter only contains tokens and chains of the network. */
  readonly #responses = new Map<string, ListAvailableRoutesResponse>();

  constructor(network: Network, settings: FeeSettings) {
    this.#network = network;
    this.#routes = findAvailableRoutes(network, settings);
    this.#basicMessages = this.#routes.map((route) => Object.freeze(createRoute(route)));
  }

  respond({
    token,
    from,
    to,
    isFull,
  }: Readonly<Record<"token" | "from" | "to", string | undefined>> & { readonly isFull: boolean }) {
    const key = `${token ?? ""} ${from ?? ""} ${to ?? ""} ${isFull}`;
    const memoized = this.#responses.get(key);
    if (memoized !== undefined) return memoized;
    const matches = (isFull ? this.#getFullMessages() : this.#basicMessages).filter(
      (route) =>
        (token === undefined || route.token === token) &&
        (from === undefined || route.sourceChainSlug === from) &&
        (to === undefined || route.destinationChainSlug === to),
    );
    const response = create(ListAvailableRoutesResponseSchema, { routes: matches });
    Object.freeze(response.routes);
    this.#responses.set(key, Object.freeze(response));
    return response;
  }

  #getFullMessages(): readonly RouteMessage[] {
    this.#fullMessages ??= this.#routes.map((route) => createFullRoute(this.#network, route));
    return this.#fullMessages;
  }
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
