import { multicallOn } from "../chain/local-chains.js";
import type { Placement } from "./contract-placement.js";

/** The OP stack's predeployed oracle of what a transaction's bytes cost on L1. */
export const gasPriceOracle = "0x420000000000000000000000000000000000000F";
/** Arbitrum's own contract. */
const arbSys = "0x0000000000000000000000000000000000000064";
const arbitrumChains: ReadonlySet<string> = new Set(["arbitrum", "nova"]);
const opStackChains: ReadonlySet<string> = new Set(["optimism", "base"]);
/** Wei; the local L1's own price. */
const l1BaseFee = 10_000_000_000n;
/** The Bedrock settings of the real chains: gas that every transaction pays for, and the share of it in millionths. */
const overhead = 188;
const scalar = 684_000;

/** What chains have beside tokens and bridges. */
export function systemPlacements(slug: string): readonly Placement[] {
  const multicall = { contract: "Multicall3", address: multicallOn(slug) };
  if (arbitrumChains.has(slug)) return [multicall, { contract: "ArbSys", address: arbSys }];
  if (!opStackChains.has(slug)) return [multicall];
  const setUp = { method: "initialize", values: [l1BaseFee, overhead, scalar] };
  return [multicall, { contract: "GasPriceOracle", address: gasPriceOracle, setUp }];
}
