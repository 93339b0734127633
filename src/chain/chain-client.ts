import { unescape as decode } from "node:querystring";
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
  /** What `eth_chainId` must answer. */
  readonly chainId: number;
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

interface Endpoint {
  readonly name: string;
  /** Sends one call; ExchangeError when there is no answer to believe. */
  send(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown>;
}

export function createChainClient(options: ChainClientOptions): ChainClient {
  const { slug, chainId, urls, onFailure } = options;
  const endpoints = urls.map((url) => createEndpoint(url));
  let lastId = 0;

  function createEndpoint(text: string): Endpoint {
    const address = withoutUserInfo(text);
    let checking: Promise<void> | undefined;

    /** Nothing that an endpoint says is believed before it has named the right chain, once. */
    async function check(): Promise<void> {
      const answer = await call(address, "eth_chainId", [], new AbortController().signal);
      if (!isQuantity(answer) || Number(answer) !== chainId) throw new ExchangeError("serves another chain");
    }

    return {
      name: endpointName(text),
      async send(method, params, signal) {
        checking ??= check().catch((error: unknown) => {
          checking = undefined;
          throw error;
        });
        await unlessAborted(checking, signal);
        return call(address, method, params, signal);
      },
    };
  }

  async function call(
    { url, authorization }: Address,
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
      ...(authorization === undefined ? {} : { authorization }),
    });
    if (typeof answer !== "object" || answer === null) throw new ExchangeError("answered no JSON-RPC");
    const { id: answered, result, error } = answer as { id?: unknown; result?: unknown; error?: unknown };
    if (error !== undefined && error !== null) {
      const revert = readRevert(method, error);
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
      for (const endpoint of endpoints) {
        try {
          return await endpoint.send(method, params, signal);
        } catch (error) {
          if (!(error instanceof ExchangeError)) throw error;
          // The caller left or its time is up: that says nothing about the endpoint.
          if (signal.aborted) break;
          onFailure({ chain: slug, endpoint: endpoint.name, method, problem: error.message });
        }
      }
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} gives an answer`);
    },
  };
}

/** Waits for work that others share, for as long as this caller does. */
async function unlessAborted<T>(shared: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(new ExchangeError("did not answer in time"));
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
  });
  try {
    return await Promise.race([shared, left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** Whether a value is a number as JSON-RPC writes it: 0x and up to 32 hex digits. */
export function isQuantity(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{1,32}$/i.test(value);
}

interface Address {
  readonly url: string;
  /** Value of the Authorization header; undefined: none. */
  readonly authorization: string | undefined;
}

/** User and password of a URL, which no HTTP client sends by itself, as the header that servers read. */
function withoutUserInfo(text: string): Address {
  const url = new URL(text);
  const { username, password } = url;
  if (username === "" && password === "") return { url: text, authorization: undefined };
  url.username = "";
  url.password = "";
  const userInfo = `${decode(username)}:${decode(password)}`;
  return { url: url.href, authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` };
}
