import { createRequire } from "node:module";
import type * as undici from "undici";

// The parts of undici in use, by their files: the package's main file loads 111 modules, among them fetch, WebSocket, caches
// and mocks, which cost 40 ms and 8 MB at every start.
const require = createRequire(import.meta.url);

/** undici's agent. It has no methods such as `request`: use the function below. */
export const Agent = require("undici/lib/dispatcher/agent.js") as typeof undici.Agent;
export type Agent = undici.Agent;

/** undici's function that creates a function that opens connections. */
export const buildConnector = require("undici/lib/core/connect.js") as typeof undici.buildConnector;

const { parseURL } = require("undici/lib/core/util.js") as { parseURL(url: string): URL };
const requestOf = require("undici/lib/api/api-request.js") as (
  this: undici.Dispatcher,
  options: undici.Dispatcher.RequestOptions,
) => Promise<undici.Dispatcher.ResponseData>;

/** Options of a request whose URL is given beside them. */
export type RequestOptions = Omit<undici.Dispatcher.RequestOptions, "origin" | "path">;

/** Performs an HTTP request, as undici's `request` does. */
export function request(
  dispatcher: undici.Dispatcher,
  url: string,
  options: RequestOptions,
): Promise<undici.Dispatcher.ResponseData> {
  const { origin, pathname, search } = parseURL(url);
  return requestOf.call(dispatcher, { ...options, origin, path: `${pathname}${search}` });
}
