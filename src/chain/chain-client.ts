import type { Dispatcher } from "undici";
import { ServiceError } from "../errors.js";
import { ExchangeError, exchangeJson } from "../remote/exchange.js";
import { endpointName } from "./endpoint-name.js";
import { readRevert } from "./rpc-error.js";

/** Speaks JSON-RPC with one chain. */
export interface ChainClient {
  readonly slug: string;
  /**
   * Calls one method and gives its result.
   * @throws RevertError when the call itself reverts.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint of the chain gives an answer.
   */
  send(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown>;
}

export interface ChainClientOptions {
  readonly slug: string;
  /** In order of preference: the next is asked when one fails. */
  readonly urls: readonly string[];
  readonly dispatcher: Dispatcher;
  /** Longest time for one attempt, in milliseconds. */
  readonly attemptMs: number;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  /** Told of every attempt that failed. */
  readonly onFailure: (failure: EndpointFailure) => void;
}

/** An attempt that gave no answer. Holds nothing secret. */
export interface EndpointFailure {
  readonly chain: string;
  readonly endpoint: string;
  readonly method: string;
  readonly problem: string;
}

export function createChainClient(options: ChainClientOptions): ChainClient {
  const { slug, urls, onFailure } = options;
  const endpoints = urls.map((url) => ({ url, name: endpointName(url) }));
  let lastId = 0;

  async function attempt(
    url: string,
    method: string,
    params: readonly unknown[],
    signal: AbortSignal,
  ): Promise<unknown> {
    lastId += 1;
    const id = lastId;
    const answer = await exchangeJson(url, {
      dispatcher: options.dispatcher,
      timeoutMs: options.attemptMs,
      maxBytes: options.maxBytes,
      signal,
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
    });
    if (typeof answer !== "object" || answer === null) throw new ExchangeError("answered no JSON-RPC");
    const { id: answered, result, error } = answer as { id?: unknown; result?: unknown; error?: unknown };
    if (error !== undefined && error !== null) {
      const revert = readRevert(error);
      if (revert !== undefined) throw revert;
      const { code } = error as { code?: unknown };
      throw new ExchangeError(`answered JSON-RPC error ${typeof code === "number" ? code : "without a code"}`);
    }
    if (result === undefined || answered !== id) throw new ExchangeError("answered no JSON-RPC");
    return result;
  }

  return {
    slug,
    async send(method, params, signal) {
      for (const { url, name } of endpoints) {
        try {
          return await attempt(url, method, params, signal);
        } catch (error) {
          if (!(error instanceof ExchangeError)) throw error;
          onFailure({ chain: slug, endpoint: name, method, problem: error.message });
          if (signal.aborted) break;
        }
      }
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} gives an answer`);
    },
  };
}
