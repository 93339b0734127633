import { fetchApiWithRetry } from "./api-client.js";
import { buildPath } from "./build-path.js";
import { toNetworkParameter } from "./network.js";
import type { Route } from "./route-selection.js";

// Loaders that fetch once and keep the result. A failed fetch is repeated on the next call.

/** Loads the routes of a network. */
export type LoadRoutes = (network: string) => Promise<readonly Route[]>;
/** Loads a lookup of token decimals. It returns undefined for an unknown token: show amounts in the smallest unit then. */
export type LoadDecimals = () => Promise<(token: string) => number | undefined>;

const LOAD_TIMEOUT_MS = 30_000;

export function createRouteLoader(): LoadRoutes {
  const loaders = new Map<string, () => Promise<readonly Route[]>>();
  return (network) => {
    const path = buildPath("/v1/available-routes", { network: toNetworkParameter(network) });
    const load = loaders.get(network) ?? memoizeFetch<readonly Route[]>(path);
    loaders.set(network, load);
    return load();
  };
}

export function createDecimalsLoader(): LoadDecimals {
  const load = memoizeFetch<Readonly<Record<string, number>>>("/assets/tokens.json");
  return async () => {
    const decimals = await load();
    return (token) => (Object.hasOwn(decimals, token) ? decimals[token] : undefined);
  };
}

function memoizeFetch<Body>(path: string): () => Promise<Body> {
  let result: Promise<Body> | undefined;
  return () => {
    result ??= fetchApiWithRetry<Body>(path, AbortSignal.timeout(LOAD_TIMEOUT_MS)).then(
      ({ body }) => body,
      (error: unknown) => {
        result = undefined;
        throw error;
      },
    );
    return result;
  };
}
