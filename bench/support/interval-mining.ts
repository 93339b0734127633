import { createRpc } from "../../devnet/chain/json-rpc.js";
import { networkOf } from "../../src/hop/networks.js";

/** Anvil's shortest interval. */
const leastSeconds = 1;

/** Has the local chains make blocks about as often as the real ones. */
export async function mineInIntervals(environment: Readonly<Record<string, string>>): Promise<void> {
  for (const { slug, blockMs } of networkOf("mainnet").chains.values()) {
    const url = environment[`RPC_URL_${slug.toUpperCase()}`] ?? "";
    await createRpc(url)("evm_setIntervalMining", [Math.max(Math.round(blockMs / 1000), leastSeconds)]);
  }
}
