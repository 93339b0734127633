import { utils } from "ethers";
import { getTokenDecimals } from "../../src/hop/tokens.js";
import { erc20Abi } from "./abi.js";
import { toHexQuantity } from "./json-rpc.js";
import { findContract, getContract, getLocalChain, isNativeCoin, type LocalChains } from "./local-chains.js";
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
  const to = getTokenAddress(token, slug);
  const [owner] = erc20Abi.decodeFunctionResult(
    "owner",
    await callContract(chain, to, erc20Abi.encodeFunctionData("owner")),
  );
  await sendTransaction(chain, {
    from: owner as string,
    to,
    data: erc20Abi.encodeFunctionData("mint", [account, amount]),
  });
}
