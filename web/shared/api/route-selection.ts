/** A route as `/v1/available-routes` returns it. */
export interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly sourceChainId: number;
  readonly destinationChainSlug: string;
  readonly destinationChainId: number;
}

/** A token with the slugs of its source and destination chain. */
export interface RouteSelection {
  readonly token: string;
  readonly from: string;
  readonly to: string;
}

export function listTokens(routes: readonly Route[]): readonly string[] {
  return unique(routes.map(({ token }) => token));
}

/** Returns the chains from which a token can be sent. */
export function listSourceChains(routes: readonly Route[], token: string): readonly string[] {
  return unique(routes.filter((route) => route.token === token).map((route) => route.sourceChainSlug));
}

/** Returns the chains to which a token can be sent, from one chain or from any. */
export function listDestinationChains(routes: readonly Route[], token: string, from?: string): readonly string[] {
  const matching = routes.filter(
    (route) => route.token === token && (from ?? route.sourceChainSlug) === route.sourceChainSlug,
  );
  return unique(matching.map((route) => route.destinationChainSlug));
}

/** Returns all chains of the routes, in the order of the service. */
export function listChains(routes: readonly Route[]): readonly string[] {
  return unique([
    ...routes.map((route) => route.sourceChainSlug),
    ...routes.map((route) => route.destinationChainSlug),
  ]);
}

export function hasRoute(routes: readonly Route[], { token, from, to }: RouteSelection): boolean {
  return listDestinationChains(routes, token, from).includes(to);
}

/**
 * Returns the existing route nearest to a preference: the token has priority over the source, the source over the
 * destination. Returns undefined if there are no routes.
 */
export function selectNearestRoute(
  routes: readonly Route[],
  preferred: Partial<RouteSelection>,
): RouteSelection | undefined {
  const token = matchOrFirst(listTokens(routes), preferred.token);
  if (token === undefined) return undefined;
  const from = matchOrFirst(listSourceChains(routes, token), preferred.from);
  const to = from && matchOrFirst(listDestinationChains(routes, token, from), preferred.to);
  return from && to ? { token, from, to } : undefined;
}

/** Ignores case, as the service does for symbols. */
function matchOrFirst(values: readonly string[], preferred: string | undefined): string | undefined {
  return values.find((value) => value.toLowerCase() === preferred?.toLowerCase()) ?? values[0];
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
