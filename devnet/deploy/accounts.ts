import { utils } from "ethers";

/**
 * Accounts and contracts that only the local network has. Nobody holds a key of them: the local chains let everyone be
 * anyone.
 */
export const deployer = addressNamed("deployer");
/** Owns the canonical tokens and mints them. */
export const faucet = addressNamed("faucet");
/** Brings deposits from L1 and the roots of settled transfers. */
export const messenger = addressNamed("messenger");
/** Holds the LP tokens of every pool and may ramp its amplification. */
export const poolOwner = addressNamed("pool owner");
/** Gets the fees of CCTP transfers. */
export const feeCollector = addressNamed("fee collector");
export const tokenMinter = addressNamed("CCTP token minter");
export const uniswapLiquidityProvider = addressNamed("Uniswap liquidity provider");

function addressNamed(name: string): string {
  return utils.getAddress(utils.hexDataSlice(utils.id(`hop local network: ${name}`), 12));
}
