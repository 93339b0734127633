import { create } from "@bufbuild/protobuf";
import {
  type ListAvailableRoutesRequest,
  type ListAvailableRoutesResponse,
  ListAvailableRoutesResponseSchema,
  RouteSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Network } from "../hop/networks.js";
import { findAvailableRoutes } from "../routes/available-routes.js";
import type { CachePolicy, Operation } from "./operation.js";
import { parseChain, parseNetwork, parseRpcUrls, parseToken } from "./parameters.js";

/** Routes change when the settings do, which is seldom. */
const CACHE_POLICY: CachePolicy = { ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 };

interface RouteFilter {
  readonly token: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export function createListAvailableRoutes(deps: {
  readonly settings: FeeSettingsSource;
}): Operation<ListAvailableRoutesRequest, ListAvailableRoutesResponse> {
  /** Answers change with the settings of their network and with nothing else. */
  const answersBySettings = new WeakMap<FeeSettings, RouteListResponder>();

  function answer(network: Network, settings: FeeSettings, filter: RouteFilter): ListAvailableRoutesResponse {
    let answers = answersBySettings.get(settings);
    if (answers === undefined) {
      answers = createRouteListResponder(network, settings);
      answersBySettings.set(settings, answers);
    }
    return answers(filter);
  }

  return (request, context) => {
    const network = parseNetwork(request.network);
    context.addLogFields({ network: network.slug });
    const filter: RouteFilter = {
      token: request.token === "" ? undefined : parseToken(network, request.token).symbol,
      from: request.fromChain === "" ? undefined : parseChain(network, "fromChain", request.fromChain).slug,
      to: request.toChain === "" ? undefined : parseChain(network, "toChain", request.toChain).slug,
    };
    parseRpcUrls(network, request.rpcUrl);
    context.setCachePolicy(CACHE_POLICY);
    const known = deps.settings.peek(network.slug);
    if (known !== undefined) return answer(network, known, filter);
    return deps.settings.getCurrentOrBuiltIn(network.slug).then((settings) => answer(network, settings, filter));
  };
}

type RouteListResponder = (filter: RouteFilter) => ListAvailableRoutesResponse;

/** The answers of one network under one state of its settings, each made once and frozen: who prints one may keep that. */
function createRouteListResponder(network: Network, settings: FeeSettings): RouteListResponder {
  const routes = findAvailableRoutes(network, settings).map(({ token, source, destination }) =>
    Object.freeze(
      create(RouteSchema, {
        token,
        sourceChainSlug: source.slug,
        sourceChainId: source.chainId,
        destinationChainSlug: destination.slug,
        destinationChainId: destination.chainId,
      }),
    ),
  );
  /** At most tokens times chains times chains, since a filter holds only what the network has. */
  const known = new Map<string, ListAvailableRoutesResponse>();
  return ({ token, from, to }) => {
    const key = `${token ?? ""} ${from ?? ""} ${to ?? ""}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const chosen = routes.filter(
      (route) =>
        (token === undefined || route.token === token) &&
        (from === undefined || route.sourceChainSlug === from) &&
        (to === undefined || route.destinationChainSlug === to),
    );
    const made = create(ListAvailableRoutesResponseSchema, { routes: chosen });
    Object.freeze(made.routes);
    known.set(key, Object.freeze(made));
    return made;
  };
}
