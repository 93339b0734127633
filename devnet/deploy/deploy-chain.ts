import { utils } from "ethers";
import { compileContracts } from "../cache/compile-contracts.js";
import type { JsonRpc } from "../chain/json-rpc.js";
import { getMulticallAddress } from "../chain/local-chains.js";
import { deployer } from "./accounts.js";
import { placeCctpContracts } from "./cctp-contracts.js";
import {
  type ContractCall,
  type ContractPlacement,
  encodeInitializerCalls,
  getArtifact,
  sendCallsInBatches,
  setContractCode,
} from "./contract-placement.js";
import { listHopBalances, placeHopContracts } from "./hop-contracts.js";
import { placePriceFeeds } from "./price-feeds.js";
import { placeSystemContracts } from "./system-contracts.js";
import { placeTokenContracts } from "./token-contracts.js";
import { deployUniswap, listUniswapBalances, placeUniswapContracts } from "./uniswap-contracts.js";

export interface ChainTarget {
  readonly slug: string;
  /** RPC of a node with anvil's methods that mines a block per transaction. */
  readonly rpc: JsonRpc;
}

/** Wei, for the gas of the deployment. */
const DEPLOYER_FUNDS = 10n ** 21n;

/**
 * Deploys every contract that the SDK calls on a mainnet chain, at its real address: tokens, bridges, pools and wrappers,
 * CCTP, Uniswap, multicall and the gas price oracle. Run once on an empty chain.
 * @throws Error when a contract does not compile or its initialization reverts
 */
export async function deployChain(target: ChainTarget): Promise<void> {
  const { slug, rpc } = target;
  const artifacts = compileContracts();
  await rpc("anvil_impersonateAccount", [deployer]);
  await rpc("anvil_setBalance", [deployer, utils.hexValue(DEPLOYER_FUNDS)]);
  const multicall = getArtifact(artifacts, "Multicall3");
  const call = (calls: readonly ContractCall[]): Promise<void> =>
    sendCallsInBatches(rpc, getMulticallAddress(slug), multicall, calls);
  const placements = listPlacements(slug);
  await setContractCode(rpc, artifacts, placements);
  await call(encodeInitializerCalls(artifacts, placements));
  await deployUniswap(rpc, slug, call);
  await rpc("anvil_stopImpersonatingAccount", [deployer]);
}

/** Returns the placements of all contracts on a chain. */
function listPlacements(slug: string): readonly ContractPlacement[] {
  const holdings = [...listHopBalances(slug), ...listUniswapBalances(slug)];
  return [
    ...placeSystemContracts(slug),
    ...placeTokenContracts(slug, holdings),
    ...placeHopContracts(slug),
    ...placeCctpContracts(slug),
    ...placeUniswapContracts(slug),
    ...placePriceFeeds(slug),
  ];
}
