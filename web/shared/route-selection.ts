/** A route as the service lists it. */
export interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly sourceChainId: number;
  readonly destinationChainSlug: string;
  readonly destinationChainId: number;
}

/** A token with the slugs of the chain that it leaves and the one where it arrives. */
export interface RouteChoice {
  readonly token: string;
  readonly from: string;
  readonly to: string;
}

export function tokensOf(routes: readonly Route[]): readonly string[] {
  return unique(routes.map(({ token }) => token));
}

/** Chains from which a token can be sent. */
export function sourcesOf(routes: readonly Route[], token: string): readonly string[] {
  return unique(routes.filter((route) => route.token === token).map((route) => route.sourceChainSlug));
}

/** Chains to which a token can be sent, from one chain or from any. */
export function destinationsOf(routes: readonly Route[], token: string, from?: string): readonly string[] {
  const fitting = routes.filter(
    (route) => route.token === token && (from ?? route.sourceChainSlug) === route.sourceChainSlug,
  );
  return unique(fitting.map((route) => route.destinationChainSlug));
}

/** All chains of some routes, in the order in which the service lists them. */
export function chainsOf(routes: readonly Route[]): readonly string[] {
  return unique([
    ...routes.map((route) => route.sourceChainSlug),
    ...routes.map((route) => route.destinationChainSlug),
  ]);
}

export function isRoute(routes: readonly Route[], { token, from, to }: RouteChoice): boolean {
  return destinationsOf(routes, token, from).includes(to);
}

/** The route that has most of what is wanted: its token first, then where it begins. Undefined where there is none. */
export function nearestRoute(routes: readonly Route[], wanted: Partial<RouteChoice>): RouteChoice | undefined {
  const token = among(tokensOf(routes), wanted.token);
  if (token === undefined) return undefined;
  const from = among(sourcesOf(routes, token), wanted.from);
  const to = from && among(destinationsOf(routes, token, from), wanted.to);
  return from && to ? { token, from, to } : undefined;
}

/** In any letter case: as the service takes symbols. */
function among(known: readonly string[], wanted: string | undefined): string | undefined {
  return known.find((each) => each.toLowerCase() === wanted?.toLowerCase()) ?? known[0];
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
