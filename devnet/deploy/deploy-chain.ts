import { utils } from "ethers";
import { compileContracts } from "../cache/compile-contracts.js";
import type { Rpc } from "../chain/json-rpc.js";
import { multicallOn } from "../chain/local-chains.js";
import { deployer } from "./accounts.js";
import { cctpPlacements } from "./cctp-contracts.js";
import {
  artifactOf,
  type ContractCall,
  makeCalls,
  type Placement,
  placeCode,
  setUpCalls,
} from "./contract-placement.js";
import { hopHoldings, hopPlacements } from "./hop-contracts.js";
import { systemPlacements } from "./system-contracts.js";
import { tokenPlacements } from "./token-contracts.js";
import { deployUniswap, uniswapHoldings, uniswapPlacements } from "./uniswap-contracts.js";

export interface ChainTarget {
  readonly slug: string;
  /** A node that has anvil's own methods and mines a block for every transaction. */
  readonly rpc: Rpc;
}

/** Wei, for the gas of the set-up. */
const deployerFunds = 10n ** 21n;

/**
 * Puts everything that the SDK calls on a chain of its mainnet address book there, at the addresses that it uses: tokens,
 * bridges, pools and wrappers, CCTP, Uniswap, multicall and the gas price oracle. To be run once on an empty chain.
 *
 * @throws Error when a contract does not compile or cannot be set up.
 */
export async function deployChain(target: ChainTarget): Promise<void> {
  const { slug, rpc } = target;
  const artifacts = compileContracts();
  await rpc("anvil_impersonateAccount", [deployer]);
  await rpc("anvil_setBalance", [deployer, utils.hexValue(deployerFunds)]);
  const multicall = artifactOf(artifacts, "Multicall3");
  const call = (calls: readonly ContractCall[]): Promise<void> => makeCalls(rpc, multicallOn(slug), multicall, calls);
  const placements = placementsOf(slug);
  await placeCode(rpc, artifacts, placements);
  await call(setUpCalls(artifacts, placements));
  await deployUniswap(rpc, slug, call);
  await rpc("anvil_stopImpersonatingAccount", [deployer]);
}

/** Our contracts on a chain. */
function placementsOf(slug: string): readonly Placement[] {
  const holdings = [...hopHoldings(slug), ...uniswapHoldings(slug)];
  return [
    ...systemPlacements(slug),
    ...tokenPlacements(slug, holdings),
    ...hopPlacements(slug),
    ...cctpPlacements(slug),
    ...uniswapPlacements(slug),
  ];
}
