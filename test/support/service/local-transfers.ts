import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk/contracts";
import { getBonder, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { sendTransaction } from "../../../devnet/chain/transactions.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../../devnet/transfer/sent-transfer.js";

// Transfers of 5 HOP between local chains, sent by the bonder of their route; and withdrawals.

const STRANGER = "0x00000000000000000000000000000000000a0002";
const AMOUNT = 5n * 10n ** 18n;

/** Gives the bonder of a route what it sends next. */
export async function fundSender(chains: LocalChains, source: string, destination: string): Promise<void> {
  await fundAccount(chains, source, "HOP", getBonder("HOP", source, destination), AMOUNT);
}

/** Sends a transfer whose sender has been funded. */
export async function sendFunded(chains: LocalChains, source: string, destination: string) {
  const from = getBonder("HOP", source, destination);
  const order = { token: "HOP", source, destination, from, recipient: from, amount: AMOUNT, bonderFee: 10n ** 17n };
  const noSwap = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
  const { transactionHash, logs } = await sendTransfer(chains, { ...order, ...noSwap });
  const [transfer] = parseSentTransfers(source, logs);
  if (transfer === undefined) throw new Error("no transfer was sent");
  return { transactionHash, transfer };
}

export async function fundAndSend(chains: LocalChains, source: string, destination: string) {
  await fundSender(chains, source, destination);
  return sendFunded(chains, source, destination);
}

export async function mineBlocks(chains: LocalChains, slug: string, blocks: number): Promise<void> {
  await getLocalChain(chains, slug).rpc("anvil_mine", [`0x${blocks.toString(16)}`]);
}

/** The part of an answer of GET /v1/withdrawal that a withdrawal needs. */
export interface WithdrawableAnswer {
  readonly destinationChainSlug: string;
  readonly recipientAddress: string;
  readonly amount: string;
  readonly merkleProof?: Readonly<Record<string, unknown>> & { readonly bridgeAddress: string };
}

/** Withdraws a transfer with nothing but the answer, from an account that has nothing to do with it. */
export async function withdrawByAnswer(chains: LocalChains, answer: WithdrawableAnswer): Promise<void> {
  const { destinationChainSlug, recipientAddress, amount, merkleProof: proof } = answer;
  if (proof === undefined) throw new Error("the answer has no proof");
  const data = L2Bridge.createInterface().encodeFunctionData("withdraw", [
    ...[recipientAddress, amount, proof.transferNonce, proof.bonderFee, proof.amountOutMin, proof.deadline],
    ...[proof.rootHash, proof.transferRootTotalAmount, proof.transferIdTreeIndex, proof.siblings, proof.totalLeaves],
  ] as never);
  const chain = getLocalChain(chains, destinationChainSlug);
  await sendTransaction(chain, { from: STRANGER, to: proof.bridgeAddress, data });
}
