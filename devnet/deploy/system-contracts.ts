import { getMulticallAddress } from "../chain/local-chains.js";
import type { ContractPlacement } from "./contract-placement.js";

/** The OP stack's predeployed oracle of what a transaction's bytes cost on L1. */
export const GAS_PRICE_ORACLE_ADDRESS = "0x420000000000000000000000000000000000000F";
/** Arbitrum's own contract. */
const ARB_SYS_ADDRESS = "0x0000000000000000000000000000000000000064";
const ARBITRUM_CHAINS: ReadonlySet<string> = new Set(["arbitrum", "nova"]);
const OP_STACK_CHAINS: ReadonlySet<string> = new Set(["optimism", "base"]);
/** Wei; the local L1's own price. */
const L1_BASE_FEE = 10_000_000_000n;
/** The Bedrock settings of the real chains: gas that every transaction pays for, and the share of it in millionths. */
const L1_FEE_OVERHEAD = 188;
const L1_FEE_SCALAR = 684_000;

/** What chains have beside tokens and bridges. */
export function placeSystemContracts(slug: string): readonly ContractPlacement[] {
  const multicall = { contract: "Multicall3", address: getMulticallAddress(slug) };
  if (ARBITRUM_CHAINS.has(slug)) return [multicall, { contract: "ArbSys", address: ARB_SYS_ADDRESS }];
  if (!OP_STACK_CHAINS.has(slug)) return [multicall];
  const initializer = { method: "initialize", values: [L1_BASE_FEE, L1_FEE_OVERHEAD, L1_FEE_SCALAR] };
  return [multicall, { contract: "GasPriceOracle", address: GAS_PRICE_ORACLE_ADDRESS, initializer }];
}
