import { utils } from "ethers";
import { ammWrapperAbi, cctpBridgeAbi, erc20Abi, l1BridgeAbi, l2BridgeAbi } from "../chain/abi.js";
import { getChainId, getContract, getLocalChain, isNativeCoin, type LocalChains } from "../chain/local-chains.js";
import { getTokenAddress } from "../chain/tokens.js";
import { sendTransaction, type TransactionReceipt, type TransactionRequest } from "../chain/transactions.js";

/** Parameters of a transfer to send. Amounts in the token's smallest unit, times in Unix seconds. */
export interface TransferOrder {
  readonly token: string;
  /** Chain slugs. */
  readonly source: string;
  readonly destination: string;
  readonly from: string;
  readonly recipient: string;
  readonly amount: bigint;
  /** From ethereum: the relayer fee. */
  readonly bonderFee: bigint;
  /** Minimum output of the swap on the source chain (from ethereum: on the destination chain). */
  readonly amountOutMin: bigint;
  readonly deadline: number;
  /** The same for the swap on the destination chain; both 0: no swap there. */
  readonly destinationAmountOutMin: bigint;
  readonly destinationDeadline: number;
  /** From ethereum: the account that may relay the transfer for the fee. */
  readonly relayer?: string;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/**
 * Sends a transfer as a wallet would: USDC and USDC.e through CCTP, HOP through its bridge, other tokens through the bridge
 * (from ethereum) or the AMM wrapper. The sender must own the tokens; the allowance is set here.
 */
export async function sendTransfer(chains: LocalChains, order: TransferOrder): Promise<TransactionReceipt> {
  const { token, source, destination, recipient, amount, bonderFee, amountOutMin, deadline } = order;
  const chainId = getChainId(destination);

  if (token === "USDC" || token === "USDC.e") {
    const bridge = getContract(token, source, source === "ethereum" ? "cctpL1Bridge" : "cctpL2Bridge");
    const data =
      token === "USDC"
        ? cctpBridgeAbi.encodeFunctionData("send", [chainId, recipient, amount, bonderFee])
        : cctpBridgeAbi.encodeFunctionData("swapAndSend", [
            chainId,
            recipient,
            amount,
            bonderFee,
            buildUniswapSwap(order, bridge),
          ]);
    return transactWithAllowance(chains, order, { to: bridge, data });
  }
  if (source === "ethereum") {
    const swap = hasPool(token) ? [amountOutMin, deadline] : [0, 0];
    const values = [chainId, recipient, amount, ...swap, order.relayer ?? ZERO_ADDRESS, bonderFee];
    const data = l1BridgeAbi.encodeFunctionData("sendToL2", values);
    return transactWithAllowance(chains, order, { to: getContract(token, source, "l1Bridge"), data });
  }
  return sendTransferByBridge(chains, order);
}

/** Sends from an L2 through Hop's bridge, also USDC.e, which wallets send through CCTP today. */
export async function sendTransferByBridge(chains: LocalChains, order: TransferOrder): Promise<TransactionReceipt> {
  const chainId = getChainId(order.destination);
  const { token, source, recipient, amount, bonderFee } = order;
  if (!hasPool(token)) {
    const data = l2BridgeAbi.encodeFunctionData("send", [chainId, recipient, amount, bonderFee, 0, 0]);
    return transactWithAllowance(chains, order, { to: getContract(token, source, "l2Bridge"), data });
  }
  const swaps = [order.amountOutMin, order.deadline, order.destinationAmountOutMin, order.destinationDeadline];
  const values = [chainId, recipient, amount, bonderFee, ...swaps];
  const data = ammWrapperAbi.encodeFunctionData("swapAndSend", values);
  return transactWithAllowance(chains, order, { to: getContract(token, source, "l2AmmWrapper"), data });
}

/** HOP is bridged 1:1, without a pool. */
function hasPool(token: string): boolean {
  return token !== "HOP";
}

/** Builds the swap USDC.e -> USDC on Uniswap's 0.01 % pool, at most 1 % below par. */
function buildUniswapSwap(order: TransferOrder, bridge: string): readonly unknown[] {
  const { source, amount } = order;
  const from = getContract("USDC.e", source, "l2CanonicalToken");
  const to = getContract("USDC", source, "l2CanonicalToken");
  const path = utils.solidityPack(["address", "uint24", "address"], [from, 100, to]);
  return [path, bridge, amount, (amount * 99n) / 100n];
}

async function transactWithAllowance(
  chains: LocalChains,
  order: TransferOrder,
  call: Omit<TransactionRequest, "from">,
): Promise<TransactionReceipt> {
  const { token, source, from, amount } = order;
  const chain = getLocalChain(chains, source);
  if (isNativeCoin(token, source)) return sendTransaction(chain, { ...call, from, value: amount });
  await sendTransaction(chain, {
    from,
    to: getTokenAddress(token, source),
    data: erc20Abi.encodeFunctionData("approve", [call.to, amount]),
  });
  return sendTransaction(chain, { ...call, from });
}
