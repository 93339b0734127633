import { getMulticallAddress } from "../chain/local-chains.js";
import type { ContractPlacement } from "./contract-placement.js";

/** The OP Stack's predeployed GasPriceOracle for L1 data fees. */
export const GAS_PRICE_ORACLE_ADDRESS = "0x420000000000000000000000000000000000000F";
/** Arbitrum's ArbSys precompile. */
const ARB_SYS_ADDRESS = "0x0000000000000000000000000000000000000064";
const ARBITRUM_CHAINS: ReadonlySet<string> = new Set(["arbitrum", "nova"]);
const OP_STACK_CHAINS: ReadonlySet<string> = new Set(["optimism", "base"]);
/** Wei; the gas price of the local L1. */
const L1_BASE_FEE = 10_000_000_000n;
/** Bedrock parameters of the real chains: fixed overhead in gas, and the fee scalar in millionths. */
const L1_FEE_OVERHEAD = 188;
const L1_FEE_SCALAR = 684_000;

/** Returns the placements of contracts other than tokens and bridges. */
export function placeSystemContracts(slug: string): readonly ContractPlacement[] {
  const multicall = { contract: "Multicall3", address: getMulticallAddress(slug) };
  if (ARBITRUM_CHAINS.has(slug)) return [multicall, { contract: "ArbSys", address: ARB_SYS_ADDRESS }];
  if (!OP_STACK_CHAINS.has(slug)) return [multicall];
  const initializer = { method: "initialize", values: [L1_BASE_FEE, L1_FEE_OVERHEAD, L1_FEE_SCALAR] };
  return [multicall, { contract: "GasPriceOracle", address: GAS_PRICE_ORACLE_ADDRESS, initializer }];
}
