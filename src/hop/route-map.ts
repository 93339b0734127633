import type { Chain } from "./networks.js";
import type { Token } from "./tokens.js";

/** A value for each route. Routes are told apart by the objects that `findToken` and `findChain` return. */
export interface RouteMap<Value> {
  get(token: Token, source: Chain, destination: Chain): Value | undefined;
  set(token: Token, source: Chain, destination: Chain, value: Value): void;
  values(): Iterable<Value>;
}

/** Creates a map by identity: a text key would have to be built and hashed for every look-up. */
export function createRouteMap<Value>(): RouteMap<Value> {
  const bySource = new Map<Token, Map<Chain, Map<Chain, Value>>>();
  return {
    get: (token, source, destination) => bySource.get(token)?.get(source)?.get(destination),
    set(token, source, destination, value) {
      const byChain = bySource.get(token) ?? new Map<Chain, Map<Chain, Value>>();
      const byDestination = byChain.get(source) ?? new Map<Chain, Value>();
      byDestination.set(destination, value);
      byChain.set(source, byDestination);
      bySource.set(token, byChain);
    },
    *values() {
      for (const byChain of bySource.values())
        for (const byDestination of byChain.values()) yield* byDestination.values();
    },
  };
}
