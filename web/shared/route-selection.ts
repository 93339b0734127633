/** A route as the service lists it. */
export interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly sourceChainId: number;
  readonly destinationChainSlug: string;
  readonly destinationChainId: number;
}

/** A token with the slugs of the chain that it leaves and the one where it arrives. */
export interface RouteSelection {
  readonly token: string;
  readonly from: string;
  readonly to: string;
}

export function listTokens(routes: readonly Route[]): readonly string[] {
  return unique(routes.map(({ token }) => token));
}

/** Chains from which a token can be sent. */
export function listSourceChains(routes: readonly Route[], token: string): readonly string[] {
  return unique(routes.filter((route) => route.token === token).map((route) => route.sourceChainSlug));
}

/** Chains to which a token can be sent, from one chain or from any. */
export function listDestinationChains(routes: readonly Route[], token: string, from?: string): readonly string[] {
  const fitting = routes.filter(
    (route) => route.token === token && (from ?? route.sourceChainSlug) === route.sourceChainSlug,
  );
  return unique(fitting.map((route) => route.destinationChainSlug));
}

/** All chains of some routes, in the order in which the service lists them. */
export function listChains(routes: readonly Route[]): readonly string[] {
  return unique([
    ...routes.map((route) => route.sourceChainSlug),
    ...routes.map((route) => route.destinationChainSlug),
  ]);
}

export function hasRoute(routes: readonly Route[], { token, from, to }: RouteSelection): boolean {
  return listDestinationChains(routes, token, from).includes(to);
}

/** The route that has most of what is wanted: its token first, then where it begins. Undefined where there is none. */
export function selectNearestRoute(
  routes: readonly Route[],
  wanted: Partial<RouteSelection>,
): RouteSelection | undefined {
  const token = matchOrFirst(listTokens(routes), wanted.token);
  if (token === undefined) return undefined;
  const from = matchOrFirst(listSourceChains(routes, token), wanted.from);
  const to = from && matchOrFirst(listDestinationChains(routes, token, from), wanted.to);
  return from && to ? { token, from, to } : undefined;
}

/** In any letter case: as the service takes symbols. */
function matchOrFirst(known: readonly string[], wanted: string | undefined): string | undefined {
  return known.find((each) => each.toLowerCase() === wanted?.toLowerCase()) ?? known[0];
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
