import { getLocalChain, type LocalChains } from "../chain/local-chains.js";
import { fundAccount, parseTokenAmount } from "../chain/tokens.js";
import type { TransactionReceipt } from "../chain/transactions.js";
import { deliverTransfer } from "../transfer/deliver-transfer.js";
import { sendTransfer, sendTransferByBridge, type TransferOrder } from "../transfer/send-transfer.js";
import { parseSentTransfers, type SentTransfer } from "../transfer/sent-transfer.js";

/** What a seed needs to send and deliver transfers in the past. */
export interface SeedContext {
  readonly chains: LocalChains;
  /** Funded accounts. */
  readonly sender: string;
  readonly recipient: string;
  /** Sets the time of a chain's next block: in the past, but after its last block. */
  setClock(slug: string, minutesAgo: number): Promise<void>;
  /** Sends a transfer with 3 % slippage and a fee of 1 %. */
  send(plan: TransferPlan): Promise<SeededSend>;
  /** Delivers the transfer on its destination at that time. */
  deliver(transfer: SentTransfer, minutesAgo: number): Promise<void>;
}

export interface TransferPlan {
  readonly token: string;
  readonly source: string;
  readonly destination: string;
  /** In whole tokens. */
  readonly amount: string;
  readonly minutesAgo: number;
  /** Time of the quote, from which the deadline counts. Default: the time of sending. */
  readonly quotedMinutesAgo?: number;
  /** From ethereum: the relayer, which gets the fee. */
  readonly relayer?: string;
  /** Sends USDC.e through Hop's bridge instead of CCTP. */
  readonly viaHopBridge?: boolean;
  /** Requests a swap at the destination even on L1, where there is none. */
  readonly requestsSwapOnL1?: boolean;
  /** Requests more of the swap at the destination than it can give, so that it fails. */
  readonly failsSwap?: boolean;
  /** Default: the context's. */
  readonly recipient?: string;
}

export interface SeededSend {
  readonly receipt: TransactionReceipt;
  readonly transfer: SentTransfer;
}

const WEEK_SECONDS = 7 * 24 * 3600;

export async function createSeedContext(chains: LocalChains, nowSeconds: number): Promise<SeedContext> {
  const anyChain = [...chains.values()][0];
  const [, sender, recipient] = ((await anyChain?.rpc("eth_accounts")) ?? []) as string[];
  if (sender === undefined || recipient === undefined) throw new Error("the chains have no accounts");

  async function setClock(slug: string, minutesAgo: number): Promise<void> {
    await getLocalChain(chains, slug).rpc("evm_setNextBlockTimestamp", [nowSeconds - minutesAgo * 60]);
  }

  return {
    chains,
    sender,
    recipient,
    setClock,
    async send(plan) {
      const { token, source, destination, minutesAgo, relayer, viaHopBridge, requestsSwapOnL1, failsSwap } = plan;
      const amount = parseTokenAmount(token, plan.amount);
      const deadline = nowSeconds - (plan.quotedMinutesAgo ?? minutesAgo) * 60 + WEEK_SECONDS;
      const swapsThere = source !== "ethereum" && (destination !== "ethereum" || requestsSwapOnL1 === true);
      const order: TransferOrder = {
        token,
        source,
        destination,
        from: sender,
        recipient: plan.recipient ?? recipient,
        amount,
        bonderFee: source === "ethereum" && relayer === undefined ? 0n : amount / 100n,
        amountOutMin: (amount * 97n) / 100n,
        deadline,
        destinationAmountOutMin: swapsThere ? (amount * (failsSwap ? 200n : 96n)) / 100n : 0n,
        destinationDeadline: swapsThere ? deadline : 0,
        ...(relayer === undefined ? {} : { relayer }),
      };
      await setClock(source, minutesAgo);
      await fundAccount(chains, source, token, sender, amount);
      const receipt = await (viaHopBridge ? sendTransferByBridge : sendTransfer)(chains, order);
      const [transfer] = parseSentTransfers(source, receipt.logs);
      if (transfer === undefined) throw new Error(`${receipt.transactionHash} on ${source} sent no transfer`);
      return { receipt, transfer };
    },
    async deliver(transfer, minutesAgo) {
      await setClock(transfer.destination, minutesAgo);
      const receipt = await deliverTransfer(chains, transfer);
      if (receipt === undefined) throw new Error(`no bonder can deliver to ${transfer.destination}`);
    },
  };
}
