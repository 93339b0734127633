import { unescape as decode } from "node:querystring";
import type { Dispatcher } from "undici";
import { ExchangeError, type ExchangeFault, exchangeJson } from "../../resilience/fetch-json.js";
import { type RpcCall, type RpcOutcome, resultOf } from "../chain-client.js";
import { CallRefused, encodeCalls, readAnswer, readAnswers, refusesBatch, UnfitResult } from "../json-rpc/rpc-codec.js";
import { endpointDigits, endpointName } from "./endpoint-id.js";

/** One RPC endpoint of a chain. */
export interface Endpoint {
  /** Its name for logs, without anything secret. */
  readonly name: string;
  /** The part of it that anybody may know. */
  readonly digits: string;
  /**
   * Calls methods, in one HTTP request where the endpoint takes batches, and gives their outcomes in order. Nothing
   * is given out unless the endpoint has named the right chain just now: it is asked for it along with the calls.
   * @throws ExchangeError when there is no answer to believe to each of them.
   */
  ask(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]>;
}

/** One HTTP request to an endpoint. */
export interface RpcExchange {
  /** Digits of the endpoint. */
  readonly endpoint: string;
  /** The method; `batch` where there are several calls. */
  readonly method: string;
  readonly calls: number;
}

export type ExchangeOutcome = "ok" | ExchangeFault;

/** Told of each request that goes out; what it gives is told, once, how that ended. */
export type ExchangeObserver<Exchange = RpcExchange> = (exchange: Exchange) => (outcome: ExchangeOutcome) => void;

export interface EndpointOptions {
  readonly url: string;
  /** What `eth_chainId` must answer. */
  readonly chainId: number;
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  readonly now: () => number;
  readonly onExchange?: ExchangeObserver | undefined;
}

/** After which time a batch of a size that was refused is tried again. */
const batchRetryMs = 10 * 60_000;
/** The same where a server error may have been meant so, or have been just that. */
const uncertainRetryMs = 30_000;
/** After so many server errors in a row, batches that once went well are taken to be refused. */
const manyServerErrors = 3;
/** Most requests at a time in place of a batch. */
const maxParallel = 16;
/** How long its word on which chain it serves stands, unless it fails: behind one address may be several nodes. */
const verifiedMs = 250;
/** For how long an endpoint of another chain is left alone. */
const wrongChainRestMs = 30_000;

const chainIdCall: RpcCall = { method: "eth_chainId", params: [] };

export function createEndpoint({ url, chainId, dispatcher, maxBytes, now, onExchange }: EndpointOptions): Endpoint {
  const address = withoutUserInfo(url);
  const digits = endpointDigits(url);
  let lastId = 0;
  /** When it was asked last which chain it serves, and named the right one. */
  let verifiedAt = Number.NEGATIVE_INFINITY;
  let wasVerified = false;
  /** Most calls that went well in one batch. */
  let largestBatch = 1;
  let refused: { readonly size: number; readonly at: number; readonly ms: number } | undefined;
  /** For how long the last refusal counts. */
  let refusalMs = batchRetryMs;
  /** Batches in a row that were answered with a server error. */
  let serverErrors = 0;

  /**
   * Sends calls in one HTTP request.
   * @param read makes of the answer what is wanted of it; undefined: the endpoint refuses them all
   */
  async function post<T>(
    calls: readonly RpcCall[],
    signal: AbortSignal,
    read: (answer: unknown, firstId: number) => T,
  ): Promise<T> {
    const firstId = lastId + 1;
    lastId += calls.length;
    const body = encodeCalls(calls, firstId);
    const method = calls.length === 1 ? (calls[0]?.method ?? "") : "batch";
    const ended = onExchange?.({ endpoint: digits, method, calls: calls.length });
    let outcome: ExchangeOutcome = "bad_answer";
    try {
      const answer = await exchangeJson(address.url, { ...address.headers, dispatcher, maxBytes, signal, body });
      const found = read(answer, firstId);
      outcome = found === undefined ? "refused" : "ok";
      return found;
    } catch (error) {
      if (error instanceof ExchangeError) outcome = error.fault;
      throw error;
    } finally {
      ended?.(outcome);
    }
  }

  /** @throws ExchangeError where the first call is the one for the chain's id, and another chain is named */
  function checkChain([call]: readonly RpcCall[], [outcome]: readonly RpcOutcome[]): void {
    if (call !== chainIdCall || Number(resultOf(outcome)) === chainId) return;
    throw new ExchangeError("serves another chain", { fault: "wrong_chain", retryAfterMs: wrongChainRestMs });
  }

  function single(call: RpcCall, signal: AbortSignal): Promise<RpcOutcome> {
    return post([call], signal, (answer, firstId) => {
      const outcome = readAnswer(answer, call, firstId);
      checkChain([call], [outcome]);
      return outcome;
    });
  }

  async function singles(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    const outcomes: RpcOutcome[] = [];
    const queue = calls.entries();
    // When one fails the attempt is over, and with its signal all others end.
    const work = async (): Promise<void> => {
      for (const [index, call] of queue) outcomes[index] = await single(call, signal);
    };
    await Promise.all(Array.from({ length: Math.min(maxParallel, calls.length) }, work));
    return outcomes;
  }

  /** The outcomes of a batch; undefined when the endpoint refuses to take it as one, or cannot. */
  async function inOneRequest(
    calls: readonly RpcCall[],
    signal: AbortSignal,
  ): Promise<readonly RpcOutcome[] | undefined> {
    // What went well once and is refused now is a failure; but if it stays so, the next attempt may find out.
    const mayRefuse = calls.length > largestBatch;
    const outcomes = await post(calls, signal, (answer, firstId) => {
      serverErrors = 0;
      if (refusesBatch(answer)) {
        refusalMs = batchRetryMs;
        if (mayRefuse) return undefined;
        largestBatch = 1;
      }
      const listed = inList(answer, calls, firstId);
      if (listed !== undefined) checkChain(calls, listed);
      return listed;
    }).catch((error: unknown) => {
      if (error instanceof ExchangeError && isRefusal(error.status)) {
        const isServerError = Number(error.status) >= 500;
        serverErrors = isServerError ? serverErrors + 1 : 0;
        refusalMs = isServerError ? uncertainRetryMs : batchRetryMs;
        if (mayRefuse) return undefined;
        // A server error is mostly just that.
        if (!isServerError || serverErrors >= manyServerErrors) largestBatch = 1;
      }
      throw error;
    });
    if (outcomes === undefined) return undefined;
    largestBatch = Math.max(largestBatch, calls.length);
    if (refused !== undefined && refused.size <= calls.length) refused = undefined;
    return outcomes;
  }

  /** The outcomes in the answer to a batch; undefined when it is a list that mixes them up. */
  function inList(answer: unknown, calls: readonly RpcCall[], firstId: number): readonly RpcOutcome[] | undefined {
    try {
      return readAnswers(Array.isArray(answer) ? answer : [], calls, firstId);
    } catch (error) {
      if (!Array.isArray(answer) || error instanceof CallRefused || error instanceof UnfitResult) throw error;
      refusalMs = uncertainRetryMs;
      largestBatch = 1;
      return undefined;
    }
  }

  async function run(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    if (calls.length === 1) return singles(calls, signal);
    const knownToRefuse = refused !== undefined && refused.size <= calls.length && now() - refused.at < refused.ms;
    const outcomes = knownToRefuse ? undefined : await inOneRequest(calls, signal);
    if (outcomes !== undefined) return outcomes;
    if (knownToRefuse) return singles(calls, signal);
    // It may be the node and not the batch: one call tells, before all are sent.
    const [probe, ...others] = calls;
    const separate = [
      ...(await singles(probe === undefined ? [] : [probe], signal)),
      ...(await singles(others, signal)),
    ];
    refused = { size: Math.min(calls.length, refused?.size ?? calls.length), at: now(), ms: refusalMs };
    return separate;
  }

  /** Runs calls and, first among them, the one for the chain's id. */
  async function runVerifying(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcOutcome[]> {
    // How a search is refused tells how much the endpoint takes: one that goes alone stays alone, once one went together.
    const isLoneSearch = calls.length === 1 && calls[0]?.method === "eth_getLogs";
    if (!wasVerified || !isLoneSearch) return run([chainIdCall, ...calls], signal);
    return (await Promise.all([singles([chainIdCall], signal), run(calls, signal)])).flat();
  }

  return {
    name: endpointName(url),
    digits,
    async ask(calls, signal) {
      const askedAt = now();
      try {
        if (askedAt - verifiedAt < verifiedMs) return await run(calls, signal);
        // Who asks while that is under way asks for itself: nobody waits for another, or fails with it.
        const [, ...outcomes] = await runVerifying(calls, signal);
        verifiedAt = askedAt;
        wasVerified = true;
        return outcomes;
      } catch (error) {
        // It may be another node that answers next.
        if (!(error instanceof CallRefused)) verifiedAt = Number.NEGATIVE_INFINITY;
        throw error;
      }
    },
  };
}

/** Whether an HTTP status may mean that batches are not taken: not access denied, and not too much asked. */
function isRefusal(status: number | undefined): boolean {
  return status !== undefined && ![401, 403, 429].includes(status);
}

interface Address {
  readonly url: string;
  readonly headers: { readonly authorization?: string };
}

/** User and password of a URL, which no HTTP client sends by itself, as the header that servers read. */
export function withoutUserInfo(text: string): Address {
  const url = new URL(text);
  const { username, password } = url;
  if (username === "" && password === "") return { url: text, headers: {} };
  url.username = "";
  url.password = "";
  const userInfo = `${decode(username)}:${decode(password)}`;
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` } };
}
