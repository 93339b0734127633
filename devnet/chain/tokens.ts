import { utils } from "ethers";
import { decimalsOf } from "../../src/hop/tokens.js";
import { erc20 } from "./abi.js";
import { toQuantity } from "./json-rpc.js";
import { chainOf, contractOf, findContract, isNativeCoin, type LocalChains } from "./local-chains.js";
import { call, transact } from "./transactions.js";

/** Address of the token that people hold on a chain. */
export function tokenOn(token: string, slug: string): string {
  return findContract(token, slug, "l1CanonicalToken") ?? contractOf(token, slug, "l2CanonicalToken");
}

/** An amount of whole tokens, such as "0.5", in the token's smallest unit. */
export function rawAmount(token: string, amount: string): bigint {
  return utils.parseUnits(amount, decimalsOf(token)).toBigInt();
}

/** Gives an account tokens (the coin itself where the token is the chain's coin), in the token's smallest unit. */
export async function giveTokens(
  chains: LocalChains,
  slug: string,
  token: string,
  account: string,
  amount: bigint,
): Promise<void> {
  const chain = chainOf(chains, slug);
  if (isNativeCoin(token, slug)) {
    const balance = BigInt((await chain.rpc("eth_getBalance", [account, "latest"])) as string);
    await chain.rpc("anvil_setBalance", [account, toQuantity(balance + amount)]);
    return;
  }
  const to = tokenOn(token, slug);
  const [owner] = erc20.decodeFunctionResult("owner", await call(chain, to, erc20.encodeFunctionData("owner")));
  await transact(chain, { from: owner as string, to, data: erc20.encodeFunctionData("mint", [account, amount]) });
}
