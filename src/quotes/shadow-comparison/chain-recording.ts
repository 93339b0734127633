import type { ChainClient, RpcCall, RpcCallResult } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { RevertError } from "../../chain/json-rpc/revert-error.js";
import type { ChainState } from "../state/chain-state.js";

/** The calls to a chain at one block with their outcomes, as JSON. */
export interface ChainRecording {
  readonly pin: ChainPin;
  readonly calls: readonly RecordedCall[];
}

/** The block and the gas price of a chain, as quantities of JSON-RPC; absent: calls are sent unchanged. */
export interface ChainPin {
  readonly block?: string;
  readonly gasPrice?: string;
}

export interface RecordedCall {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly outcome: { readonly result: unknown } | { readonly revert: RecordedRevert };
}

/** Without the node's message, which can contain anything. */
interface RecordedRevert {
  readonly code: number;
  readonly data?: string | undefined;
}

/** Methods whose second parameter is a block. */
const METHODS_AT_BLOCK = new Set(["eth_call", "eth_estimateGas"]);
/** Calls in one comparison. The SDK sends about seven for a quote. */
const MAX_RECORDED_CALLS = 200;

/** Returns the pin of what was read of a chain; an empty one if nothing was. */
export function createChainPin(state: ChainState | undefined): ChainPin {
  if (state === undefined) return {};
  const toQuantity = (value: bigint): string => `0x${value.toString(16)}`;
  return {
    block: toQuantity(state.block.number),
    ...(state.gasPrice !== undefined && { gasPrice: toQuantity(state.gasPrice) }),
  };
}

/** Chains at the blocks of a quote, and the calls to them. */
export interface RecordedChains extends NetworkChainClients {
  /** Returns the recordings by slug. */
  recordings(): Readonly<Record<string, ChainRecording>>;
}

/**
 * Pins chains to blocks and gas prices, and records all calls.
 * @param pins by slug; the clients of other chains throw, as do calls beyond a limit
 */
export function recordChains(access: NetworkChainClients, pins: ReadonlyMap<string, ChainPin>): RecordedChains {
  const callsBySlug = new Map<string, Map<string, RecordedCall>>();
  let callCount = 0;

  function countCalls(count: number): void {
    callCount += count;
    if (callCount > MAX_RECORDED_CALLS) throw new Error("the comparison needs too many calls");
  }

  function record(slug: string, { method, params }: RpcCall, outcome: RpcCallResult): void {
    const calls = callsBySlug.get(slug) ?? new Map<string, RecordedCall>();
    callsBySlug.set(slug, calls);
    calls.set(getCallKey(method, params), { method, params, outcome: printOutcome(outcome) });
  }

  function recordClient(client: ChainClient): ChainClient {
    const { slug } = client;
    return {
      slug,
      async send(method, params, signal, validate) {
        countCalls(1);
        try {
          const result = await client.send(method, params, signal, validate);
          record(slug, { method, params }, { result });
          return result;
        } catch (error) {
          if (error instanceof RevertError) record(slug, { method, params }, { revert: error });
          throw error;
        }
      },
      async sendBatch(calls, signal) {
        countCalls(calls.length);
        const outcomes = await client.sendBatch(calls, signal);
        for (const [index, call] of calls.entries()) {
          const outcome = outcomes[index];
          if (outcome !== undefined) record(slug, call, outcome);
        }
        return outcomes;
      },
      getLogs: rejectLogs,
    };
  }

  return {
    hasCustomEndpoint: () => false,
    getClient: (slug) => pinClient(recordClient(access.getClient(slug)), requirePin(pins, slug)),
    recordings: () =>
      Object.fromEntries(
        [...pins].map(([slug, pin]) => [slug, { pin, calls: [...(callsBySlug.get(slug)?.values() ?? [])] }]),
      ),
  };
}

/** Returns chains that answer from recordings. Their clients throw for a call that was not recorded. */
export function replayChains(recordings: Readonly<Record<string, ChainRecording>>): NetworkChainClients {
  const pins = new Map(Object.entries(recordings).map(([slug, { pin }]) => [slug, pin]));
  return {
    hasCustomEndpoint: () => false,
    getClient: (slug) => pinClient(replayClient(slug, recordings[slug]?.calls ?? []), requirePin(pins, slug)),
  };
}

function replayClient(slug: string, calls: readonly RecordedCall[]): ChainClient {
  const outcomes = new Map(calls.map(({ method, params, outcome }) => [getCallKey(method, params), outcome]));
  function findOutcome({ method, params }: RpcCall): RpcCallResult {
    const outcome = outcomes.get(getCallKey(method, params));
    if (outcome === undefined) throw new Error(`the recording of ${slug} has no such call: ${method}`);
    if ("result" in outcome) return outcome;
    const { code, data } = outcome.revert;
    return { revert: new RevertError("execution reverted", code, data) };
  }
  return {
    slug,
    async send(method, params) {
      const outcome = findOutcome({ method, params });
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    sendBatch: async (batch) => batch.map(findOutcome),
    getLogs: rejectLogs,
  };
}

/** Sends calls to the block of a pin, and answers with its gas price: the node has a newer one. */
function pinClient(client: ChainClient, { block, gasPrice }: ChainPin): ChainClient {
  const pinCall = (call: RpcCall): RpcCall => {
    const [first, second] = call.params;
    if (block === undefined) return call;
    if (METHODS_AT_BLOCK.has(call.method)) return { ...call, params: [first, block] };
    return call.method === "eth_getBlockByNumber" ? { ...call, params: [block, second] } : call;
  };
  const isPinnedPrice = (method: string): boolean => method === "eth_gasPrice" && gasPrice !== undefined;
  return {
    ...client,
    async send(method, params, signal, validate) {
      if (isPinnedPrice(method)) return gasPrice;
      return client.send(method, pinCall({ method, params }).params, signal, validate);
    },
    async sendBatch(calls, signal) {
      const sent = calls.filter(({ method }) => !isPinnedPrice(method));
      const outcomes = sent.length === 0 ? [] : [...(await client.sendBatch(sent.map(pinCall), signal))];
      return calls.map(({ method }) =>
        isPinnedPrice(method) ? { result: gasPrice } : outcomes.shift(),
      ) as RpcCallResult[];
    },
  };
}

function requirePin(pins: ReadonlyMap<string, ChainPin>, slug: string): ChainPin {
  const pin = pins.get(slug);
  if (pin === undefined) throw new Error(`${slug} is not a chain of the route`);
  return pin;
}

function printOutcome(outcome: RpcCallResult): RecordedCall["outcome"] {
  if ("result" in outcome) return outcome;
  return { revert: printRevert(outcome.revert) };
}

function printRevert({ code, data }: RevertError): RecordedRevert {
  return data === undefined ? { code } : { code, data };
}

function getCallKey(method: string, params: readonly unknown[]): string {
  return JSON.stringify([method, params]);
}

function rejectLogs(): never {
  throw new Error("a quote needs no logs");
}
