import type { ChainClient, RpcCall, RpcCallResult } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { RevertError } from "../../chain/json-rpc/rpc-errors.js";

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
  /** A revert is without the node's message, which can contain anything. */
  readonly outcome:
    | { readonly result: unknown }
    | { readonly revert: { readonly code: number; readonly data?: string | undefined } };
}

/** Methods whose second parameter is a block. */
const METHODS_AT_BLOCK = new Set(["eth_call", "eth_estimateGas"]);

/** The chains of a route at one block each; records all calls. The clients of other chains throw. */
export class RecordedChains implements NetworkChainClients {
  readonly #chains: NetworkChainClients;
  readonly #pins: ReadonlyMap<string, ChainPin>;
  readonly #calls = new Map<string, Map<string, RecordedCall>>();

  /** @param pins by slug */
  constructor(chains: NetworkChainClients, pins: ReadonlyMap<string, ChainPin>) {
    this.#chains = chains;
    this.#pins = pins;
  }

  hasCustomEndpoint(): boolean {
    return false;
  }

  getClient(slug: string): ChainClient {
    return pinClient(this.#recordClient(this.#chains.getClient(slug)), requirePin(this.#pins, slug));
  }

  /** Returns the recordings by slug. */
  listRecordings(): Readonly<Record<string, ChainRecording>> {
    return Object.fromEntries(
      [...this.#pins].map(([slug, pin]) => [slug, { pin, calls: [...(this.#calls.get(slug)?.values() ?? [])] }]),
    );
  }

  #recordClient(client: ChainClient): ChainClient {
    const { slug } = client;
    return {
      slug,
      send: async (method, params, signal, options) => {
        try {
          const result = await client.send(method, params, signal, options);
          this.#record(slug, { method, params }, { result });
          return result;
        } catch (error) {
          if (error instanceof RevertError) this.#record(slug, { method, params }, { revert: error });
          throw error;
        }
      },
      sendBatch: async (calls, signal) => {
        const outcomes = await client.sendBatch(calls, signal);
        for (const [index, outcome] of outcomes.entries()) {
          const call = calls[index];
          if (call !== undefined) this.#record(slug, call, outcome);
        }
        return outcomes;
      },
      getLogs: rejectLogs,
    };
  }

  #record(slug: string, { method, params }: RpcCall, outcome: RpcCallResult): void {
    const calls = this.#calls.get(slug) ?? new Map<string, RecordedCall>();
    this.#calls.set(slug, calls);
    calls.set(getCallKey(method, params), { method, params, outcome: printOutcome(outcome) });
  }
}

/** Sends calls to the block of a pin, and answers with its gas price: the node has a newer one. */
export function pinClient(client: ChainClient, { block, gasPrice }: ChainPin): ChainClient {
  const pinCall = (call: RpcCall): RpcCall => {
    const [first, second] = call.params;
    if (block === undefined) return call;
    if (METHODS_AT_BLOCK.has(call.method)) return { ...call, params: [first, block] };
    return call.method === "eth_getBlockByNumber" ? { ...call, params: [block, second] } : call;
  };
  const isPinnedPrice = (method: string): boolean => method === "eth_gasPrice" && gasPrice !== undefined;
  return {
    ...client,
    async send(method, params, signal, options) {
      if (isPinnedPrice(method)) return gasPrice;
      return client.send(method, pinCall({ method, params }).params, signal, options);
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
  const { code, data } = outcome.revert;
  return { revert: data === undefined ? { code } : { code, data } };
}

/** Identifies a call in a recording. */
export function getCallKey(method: string, params: readonly unknown[]): string {
  return JSON.stringify([method, params]);
}

function rejectLogs(): never {
  throw new Error("a quote needs no logs");
}
