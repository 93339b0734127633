import { utils } from "ethers";

/** Accounts that exist only on the local network. They have no keys: the local chains allow impersonation. */
export const deployer = deriveAddress("deployer");
/** Owns the canonical tokens and mints them. */
export const faucet = deriveAddress("faucet");
/** Relays deposits from L1 and the roots of settled transfers. */
export const messenger = deriveAddress("messenger");
/** Holds the LP tokens of every pool and may ramp its amplification. */
export const poolOwner = deriveAddress("pool owner");
/** Receives the fees of CCTP transfers. */
export const feeCollector = deriveAddress("fee collector");
export const uniswapLiquidityProvider = deriveAddress("Uniswap liquidity provider");

function deriveAddress(name: string): string {
  return utils.getAddress(utils.hexDataSlice(utils.id(`hop local network: ${name}`), 12));
}
