import { askPatiently, pathOf } from "./api-client.js";
import type { Route } from "./route-selection.js";

// What the page asks for once and then knows. What could not be had is asked for again the next time.

/** Gives the routes of a network. */
export type RouteBook = (network: string) => Promise<readonly Route[]>;
/** Gives the decimals of a token; undefined: it is not among them, so that amounts can be told in the smallest unit only. */
export type DecimalsBook = () => Promise<(token: string) => number | undefined>;

export function createRouteBook(): RouteBook {
  const pages = new Map<string, () => Promise<readonly Route[]>>();
  return (network) => {
    const parameters = network === "mainnet" ? {} : { network };
    const read = pages.get(network) ?? once<readonly Route[]>(pathOf("/v1/available-routes", parameters));
    pages.set(network, read);
    return read();
  };
}

export function createDecimalsBook(): DecimalsBook {
  const read = once<Readonly<Record<string, number>>>("/assets/tokens.json");
  return async () => {
    const decimals = await read();
    return (token) => (Object.hasOwn(decimals, token) ? decimals[token] : undefined);
  };
}

function once<Body>(path: string): () => Promise<Body> {
  let asked: Promise<Body> | undefined;
  return () => {
    asked ??= askPatiently<Body>(path, AbortSignal.timeout(30_000)).then(
      ({ body }) => body,
      (error: unknown) => {
        asked = undefined;
        throw error;
      },
    );
    return asked;
  };
}
