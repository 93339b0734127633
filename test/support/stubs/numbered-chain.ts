import type { ChainClient, RpcCall } from "../../../src/chain/chain-client.js";
import { RpcError } from "../../../src/chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../../src/errors.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { ChainStateCache } from "../../../src/quotes/state/chain-state-cache.js";
import { closeAfterTest } from "../close-after-test.js";

/**
 * Creates the cache of a chain on which each read gets its number: as the gas price, and from each contract. Uses `Date`.
 * The cache is closed after the test.
 */
export function createNumberedChain(options: Partial<ConstructorParameters<typeof ChainStateCache>[0]> = {}) {
  const polygon = getNetwork("mainnet").chains.get("polygon");
  if (polygon === undefined) throw new Error("no polygon");
  const state = {
    isDown: false,
    latencyMs: 50,
    reads: 0,
    /** The calls of each read. */
    batches: [] as (readonly RpcCall[])[],
    rejects: (_: readonly RpcCall[]) => false,
    /** Whether a call returns no data. */
    isEmpty: (_: RpcCall) => false,
    block: "0x10",
    timestamp: "0x20",
    wallOffset: 0,
    isStalled: false,
  };
  const client: ChainClient = {
    slug: "polygon",
    send: async () => ({ number: state.block, timestamp: state.timestamp }),
    getLogs: () => Promise.reject(new Error("not expected")),
    async sendBatch(calls) {
      state.reads += 1;
      state.batches.push(calls);
      const hex = state.reads.toString(16);
      const { isDown, latencyMs } = state;
      await new Promise((resolve) => setTimeout(resolve, latencyMs));
      if (isDown) throw new Error("down");
      const cause = new RpcError("answered JSON-RPC error -32000");
      if (state.rejects(calls)) throw new ServiceError("UPSTREAM_UNAVAILABLE", "no endpoint", { cause });
      return calls.map((call) => {
        if (state.isEmpty(call)) return { result: "0x" };
        return { result: `0x${call.method === "eth_call" ? hex.padStart(64, "0") : hex}` };
      });
    },
  };
  const cache = new ChainStateCache({
    chain: { ...polygon, multicallAddress: undefined },
    client,
    clocks: { now: () => Date.now() + state.wallOffset, monotonicNow: () => Date.now() },
    isStalled: () => state.isStalled,
    ...options,
  });
  return { state, cache: closeAfterTest(cache) };
}
