import type { LocalChains } from "../chain/local-chains.js";
import { edgeCaseSeeds } from "./edge-case-transfers.js";
import { createSeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";
import { typicalSeeds } from "./typical-transfers.js";

/** How far back the clocks of chains must begin that are to be seeded, in seconds. */
export const SEED_HISTORY_SECONDS = 4 * 24 * 3600;

/** Makes the past of freshly deployed chains, oldest first; leaves out what needs a chain that is not there. */
export async function seedChains(chains: LocalChains, nowSeconds: number): Promise<readonly SeededTransfer[]> {
  const stage = await createSeedContext(chains, nowSeconds);
  const possible = [...typicalSeeds, ...edgeCaseSeeds].filter(
    ({ source, destination }) => chains.has(source) && chains.has(destination),
  );
  const transfers: SeededTransfer[] = [];
  for (const seed of possible.sort((a, b) => b.hoursAgo - a.hoursAgo)) transfers.push(...(await seed.run(stage)));
  return transfers;
}
