import { chainOf, type LocalChains } from "../chain/local-chains.js";
import { giveTokens, rawAmount } from "../chain/tokens.js";
import type { Receipt } from "../chain/transactions.js";
import { deliver } from "../transfer/deliver-transfer.js";
import { sendByBridge, sendTransfer, type TransferOrder } from "../transfer/send-transfer.js";
import { readSentTransfers, type SentTransfer } from "../transfer/sent-transfer.js";

/** The chains while their past is being made. */
export interface Stage {
  readonly chains: LocalChains;
  /** Accounts of people, funded. */
  readonly sender: string;
  readonly recipient: string;
  /** Sets a chain's clock to a time in the past that is later than its last block; it runs on from there. */
  setClock(slug: string, minutesAgo: number): Promise<void>;
  /** Sends a transfer as its sender would who asks for 3 % slippage at most and grants a fee of 1 %. */
  send(plan: SendPlan): Promise<Sent>;
  /** Delivers it on its destination at that time. */
  deliver(transfer: SentTransfer, minutesAgo: number): Promise<void>;
}

export interface SendPlan {
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
  readonly overBridge?: boolean;
  /** Asks for a swap at the destination even where there is none. */
  readonly swapOnL1?: boolean;
}

export interface Sent {
  readonly receipt: Receipt;
  readonly transfer: SentTransfer;
}

const weekSeconds = 7 * 24 * 3600;

export async function createStage(chains: LocalChains, nowSeconds: number): Promise<Stage> {
  const anyChain = [...chains.values()][0];
  const [, sender, recipient] = ((await anyChain?.rpc("eth_accounts")) ?? []) as string[];
  if (sender === undefined || recipient === undefined) throw new Error("the chains have no accounts");

  async function setClock(slug: string, minutesAgo: number): Promise<void> {
    await chainOf(chains, slug).rpc("evm_setNextBlockTimestamp", [nowSeconds - minutesAgo * 60]);
  }

  return {
    chains,
    sender,
    recipient,
    setClock,
    async send(plan) {
      const { token, source, destination, minutesAgo, relayer, overBridge, swapOnL1 } = plan;
      const amount = rawAmount(token, plan.amount);
      const deadline = nowSeconds - (plan.quotedMinutesAgo ?? minutesAgo) * 60 + weekSeconds;
      const swapsThere = source !== "ethereum" && (destination !== "ethereum" || swapOnL1 === true);
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
      await giveTokens(chains, source, token, sender, amount);
      const receipt = await (overBridge ? sendByBridge : sendTransfer)(chains, order);
      const [transfer] = readSentTransfers(source, receipt.logs);
      if (transfer === undefined) throw new Error(`${receipt.transactionHash} on ${source} sent no transfer`);
      return { receipt, transfer };
    },
    async deliver(transfer, minutesAgo) {
      await setClock(transfer.destination, minutesAgo);
      const receipt = await deliver(chains, transfer);
      if (receipt === undefined) throw new Error(`no bonder can deliver to ${transfer.destination}`);
    },
  };
}
