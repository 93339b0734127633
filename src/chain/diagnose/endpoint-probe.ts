import type { Dispatcher } from "undici";
import { ExchangeError, type ExchangeFault, exchangeJson } from "../../resilience/fetch-json.js";
import type { RpcCall, RpcOutcome } from "../chain-client.js";
import { withoutUserInfo } from "../endpoints/endpoint.js";
import { endpointName } from "../endpoints/endpoint-id.js";
import { encodeCalls, readAnswer, readAnswers } from "../json-rpc/rpc-codec.js";

/** An endpoint that is asked only to learn what it does: nothing is remembered, and nothing tried another way. */
export interface EndpointProbe {
  /** Its name, without anything secret. */
  readonly name: string;
  /** @throws ExchangeError when there is no answer to believe. */
  call(call: RpcCall, signal: AbortSignal): Promise<RpcOutcome>;
  /** Whether it takes calls in one request; undefined: it did not say, for want of time or because it is asked too much. */
  takesBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<boolean | undefined>;
}

export interface EndpointProbeOptions {
  readonly url: string;
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  /** Longest time for one request, in milliseconds. */
  readonly attemptMs: number;
}

const tooManyRequests = 429;
/** Faults that say nothing of what was asked. */
const silent: ReadonlySet<ExchangeFault> = new Set(["timeout", "aborted", "network_error"]);

export function createEndpointProbe({ url, attemptMs, ...options }: EndpointProbeOptions): EndpointProbe {
  const address = withoutUserInfo(url);

  function post(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown> {
    const body = encodeCalls(calls, 1);
    return exchangeJson(address.url, { ...options, ...address.headers, timeoutMs: attemptMs, signal, body });
  }

  return {
    name: endpointName(url),
    call: async (call, signal) => readAnswer(await post([call], signal), call, 1),
    async takesBatch(calls, signal) {
      try {
        const answer = await post(calls, signal);
        if (!Array.isArray(answer)) return false;
        readAnswers(answer, calls, 1);
        return true;
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        return error.status === tooManyRequests || silent.has(error.fault) ? undefined : false;
      }
    },
  };
}

/** What a call gave; undefined where the endpoint gave no answer to believe. */
export async function unlessTrouble(call: Promise<RpcOutcome>): Promise<RpcOutcome | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ExchangeError) return undefined;
    throw error;
  }
}
