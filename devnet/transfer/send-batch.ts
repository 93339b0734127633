import { l2BridgeAbi, multicall3Abi } from "../chain/abi.js";
import {
  getChainId,
  getContract,
  getLocalChain,
  getMulticallAddress,
  type LocalChains,
} from "../chain/local-chains.js";
import { mintTokens } from "../chain/tokens.js";
import { sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { type L2Transfer, parseSentTransfers } from "./sent-transfer.js";

const GAS_LIMIT_PER_SEND = 180_000;

/** A transfer of hTokens through Hop's bridge on an L2. Amounts in the token's smallest unit, times in Unix seconds. */
export interface BatchedSend {
  readonly token: string;
  readonly destination: string;
  readonly recipient: string;
  readonly amount: bigint;
  /** Of the swap at the destination; default: none there. */
  readonly amountOutMin?: bigint;
  readonly deadline?: bigint;
}

/**
 * Sends transfers from one L2 in one transaction, through the multicall contract, as aggregators do. Each pays a bonder fee
 * of 2 %. A thousand fit into a block.
 *
 * @param options.from Any account.
 * @param options.firstCall Call made before the sends, by the multicall contract.
 */
export async function sendBatch(
  chains: LocalChains,
  source: string,
  sends: readonly BatchedSend[],
  { from, firstCall }: { readonly from: string; readonly firstCall?: { readonly to: string; readonly data: string } },
): Promise<{ readonly receipt: TransactionReceipt; readonly transfers: readonly L2Transfer[] }> {
  const chain = getLocalChain(chains, source);
  const multicall = getMulticallAddress(source);
  // A bridge burns hTokens of its caller.
  for (const token of new Set(sends.map((each) => each.token))) {
    const total = sends.reduce((sum, each) => (each.token === token ? sum + each.amount : sum), 0n);
    await mintTokens(chain, getContract(token, source, "l2HopBridgeToken"), multicall, total);
  }
  const calls = sends.map(({ token, destination, recipient, amount, amountOutMin = 0n, deadline = 0n }) => {
    const values = [getChainId(destination), recipient, amount, amount / 50n, amountOutMin, deadline];
    return [getContract(token, source, "l2Bridge"), false, l2BridgeAbi.encodeFunctionData("send", values)];
  });
  if (firstCall !== undefined) calls.unshift([firstCall.to, false, firstCall.data]);
  const data = multicall3Abi.encodeFunctionData("aggregate3", [calls]);
  const gasLimit = GAS_LIMIT_PER_SEND * (sends.length + 1);
  const receipt = await sendTransaction(chain, { from, to: multicall, data, gasLimit });
  const transfers = parseSentTransfers(source, receipt.logs).filter((transfer) => transfer.kind === "from-l2");
  return { receipt, transfers };
}
