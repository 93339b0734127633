import { getLocalChain, type LocalChains } from "../chain/local-chains.js";
import { fundAccount, parseTokenAmount } from "../chain/tokens.js";
import type { TransactionReceipt } from "../chain/transactions.js";
import { deliverTransfer } from "../transfer/deliver-transfer.js";
import { sendTransfer, sendTransferByBridge, type TransferOrder } from "../transfer/send-transfer.js";
import { parseSentTransfers, type SentTransfer } from "../transfer/sent-transfer.js";

/** The chains while their past is being made. */
export interface SeedContext {
  readonly chains: LocalChains;
  /** Accounts of people, funded. */
  readonly sender: string;
  readonly recipient: string;
  /** Sets a chain's clock to a time in the past that is later than its last block; it runs on from there. */
  setClock(slug: string, minutesAgo: number): Promise<void>;
  /** Sends a transfer as its sender would who asks for 3 % slippage at most and grants a fee of 1 %. */
  send(plan: TransferPlan): Promise<SeededSend>;
  /** Delivers it on its destination at that time. */
  deliver(transfer: SentTransfer, minutesAgo: number): Promise<void>;
}

export interface TransferPlan {
  readonly token: string;
  readonly source: string;
  readonly destination: string;
  /** In whole tokens. */
  readonly amount: string;
  readonly minutesAgo: number;
  /** When the quote was made that its deadline counts from; default: when it is sent. */
  readonly quotedMinutesAgo?: number;
  /** From ethereum: pays the bonder of the route for relaying. */
  readonly relayer?: string;
  /** USDC.e over Hop's own bridge instead of CCTP. */
  readonly viaHopBridge?: boolean;
  /** Asks for a swap at the destination even where there is none. */
  readonly requestsSwapOnL1?: boolean;
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
      const { token, source, destination, minutesAgo, relayer, viaHopBridge, requestsSwapOnL1 } = plan;
      const amount = parseTokenAmount(token, plan.amount);
      const deadline = nowSeconds - (plan.quotedMinutesAgo ?? minutesAgo) * 60 + WEEK_SECONDS;
      const swapsThere = source !== "ethereum" && (destination !== "ethereum" || requestsSwapOnL1 === true);
      const order: TransferOrder = {
        token,
        source,
        destination,
        from: sender,
        recipient,
        amount,
        bonderFee: source === "ethereum" && relayer === undefined ? 0n : amount / 100n,
        amountOutMin: (amount * 97n) / 100n,
        deadline,
        destinationAmountOutMin: swapsThere ? (amount * 96n) / 100n : 0n,
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
