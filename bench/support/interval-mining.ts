import { createJsonRpc } from "../../devnet/chain/json-rpc.js";
import { getNetwork } from "../../src/hop/networks.js";

/** Shortest interval that anvil supports. */
const MIN_INTERVAL_SECONDS = 1;

/** Makes the local chains produce blocks about as often as the real ones. */
export async function enableIntervalMining(environment: Readonly<Record<string, string>>): Promise<void> {
  for (const { slug, blockTimeMs } of getNetwork("mainnet").chains.values()) {
    const url = environment[`RPC_URL_${slug.toUpperCase()}`] ?? "";
    await createJsonRpc(url)("evm_setIntervalMining", [Math.max(Math.round(blockTimeMs / 1000), MIN_INTERVAL_SECONDS)]);
  }
}
