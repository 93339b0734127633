import { buildPath, fetchApiWithRetry } from "./api-client.js";
import type { Route } from "./route-selection.js";

// What the page asks for once and then knows. What could not be had is asked for again the next time.

/** Gives the routes of a network. */
export type LoadRoutes = (network: string) => Promise<readonly Route[]>;
/** Gives the decimals of a token; undefined: it is not among them, so that amounts can be told in the smallest unit only. */
export type LoadDecimals = () => Promise<(token: string) => number | undefined>;

export function createRouteLoader(): LoadRoutes {
  const pages = new Map<string, () => Promise<readonly Route[]>>();
  return (network) => {
    const parameters = network === "mainnet" ? {} : { network };
    const read = pages.get(network) ?? loadOnce<readonly Route[]>(buildPath("/v1/available-routes", parameters));
    pages.set(network, read);
    return read();
  };
}

export function createDecimalsLoader(): LoadDecimals {
  const read = loadOnce<Readonly<Record<string, number>>>("/assets/tokens.json");
  return async () => {
    const decimals = await read();
    return (token) => (Object.hasOwn(decimals, token) ? decimals[token] : undefined);
  };
}

function loadOnce<Body>(path: string): () => Promise<Body> {
  let asked: Promise<Body> | undefined;
  return () => {
    asked ??= fetchApiWithRetry<Body>(path, AbortSignal.timeout(30_000)).then(
      ({ body }) => body,
      (error: unknown) => {
        asked = undefined;
        throw error;
      },
    );
    return asked;
  };
}
