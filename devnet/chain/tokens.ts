import { utils } from "ethers";
import { getTokenDecimals } from "../../src/hop/tokens.js";
import { erc20Abi } from "./abi.js";
import { toHexQuantity } from "./json-rpc.js";
import {
  findContract,
  getContract,
  getLocalChain,
  isNativeCoin,
  type LocalChain,
  type LocalChains,
} from "./local-chains.js";
import { callContract, sendTransaction } from "./transactions.js";

/** Returns the address of the canonical token on a chain. */
export function getTokenAddress(token: string, slug: string): string {
  return findContract(token, slug, "l1CanonicalToken") ?? getContract(token, slug, "l2CanonicalToken");
}

/** Converts an amount of whole tokens, such as "0.5", to the token's smallest unit. */
export function parseTokenAmount(token: string, amount: string): bigint {
  return utils.parseUnits(amount, getTokenDecimals(token)).toBigInt();
}

/** Mints tokens to an account (or adds native coin), in the token's smallest unit. */
export async function fundAccount(
  chains: LocalChains,
  slug: string,
  token: string,
  account: string,
  amount: bigint,
): Promise<void> {
  const chain = getLocalChain(chains, slug);
  if (isNativeCoin(token, slug)) {
    const balance = BigInt((await chain.rpc("eth_getBalance", [account, "latest"])) as string);
    await chain.rpc("anvil_setBalance", [account, toHexQuantity(balance + amount)]);
    return;
  }
  await mintTokens(chain, getTokenAddress(token, slug), account, amount);
}

/** Mints tokens of a contract of this network, canonical tokens or hTokens, as its owner. */
export async function mintTokens(chain: LocalChain, to: string, account: string, amount: bigint): Promise<void> {
  const owner = await callContract(chain, to, erc20Abi.encodeFunctionData("owner"));
  await sendTransaction(chain, {
    from: erc20Abi.decodeFunctionResult("owner", owner)[0] as string,
    to,
    data: erc20Abi.encodeFunctionData("mint", [account, amount]),
  });
}
