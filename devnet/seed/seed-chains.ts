import type { LocalChains } from "../chain/local-chains.js";
import { edgeCaseSeeds } from "./edge-case-transfers.js";
import { createSeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";
import { typicalSeeds } from "./typical-transfers.js";
import { unbondedSeeds } from "./unbonded-transfers.js";

/** How far in the past the clock of a chain must start before seeding, in seconds. */
export const SEED_HISTORY_SECONDS = 10 * 7 * 24 * 3600;

/** Sends the seeded transfers on freshly deployed chains, oldest first. Skips those that need a chain that does not run. */
export async function seedChains(chains: LocalChains, nowSeconds: number): Promise<readonly SeededTransfer[]> {
  const context = await createSeedContext(chains, nowSeconds);
  const possible = [...typicalSeeds, ...edgeCaseSeeds, ...unbondedSeeds].filter(
    ({ source, destination }) => chains.has(source) && chains.has(destination),
  );
  const transfers: SeededTransfer[] = [];
  for (const seed of possible.sort((a, b) => b.hoursAgo - a.hoursAgo)) transfers.push(...(await seed.run(context)));
  return transfers;
}
