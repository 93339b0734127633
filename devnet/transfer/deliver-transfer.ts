import { utils } from "ethers";
import { l2BridgeAbi, messageTransmitterAbi } from "../chain/abi.js";
import {
  findContract,
  getBonder,
  getChainId,
  getContract,
  getLocalChain,
  type LocalChain,
  type LocalChains,
} from "../chain/local-chains.js";
import { callContract, sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { signAttestation } from "../deploy/attestation.js";
import type { SentTransfer } from "./sent-transfer.js";

/**
 * Delivers a transfer as on the real chains: a bonder fronts it (from an L2), the messenger relays it (from L1), or the
 * attested message is submitted (CCTP). Returns undefined if it is unbondable: a bonder cannot swap on L1.
 */
export async function deliverTransfer(
  chains: LocalChains,
  transfer: SentTransfer,
): Promise<TransactionReceipt | undefined> {
  const chain = getLocalChain(chains, transfer.destination);
  if (transfer.kind === "cctp") return receiveMessage(chain, transfer);
  if (transfer.kind === "from-l1") return completeFromL1(chain, transfer);
  return bond(chain, transfer);
}

async function bond(
  chain: LocalChain,
  transfer: SentTransfer & { kind: "from-l2" },
): Promise<TransactionReceipt | undefined> {
  const { token, source, destination, recipient, amount, transferNonce, bonderFee, amountOutMin, deadline } = transfer;
  const from = getBonder(token, source, destination);
  const common = [recipient, amount, transferNonce, bonderFee];
  if (amountOutMin === 0n && deadline === 0n) {
    const to = getBridge(token, destination);
    return sendTransaction(chain, { from, to, data: l2BridgeAbi.encodeFunctionData("bondWithdrawal", common) });
  }
  if (destination === "ethereum") return undefined;
  const data = l2BridgeAbi.encodeFunctionData("bondWithdrawalAndDistribute", [...common, amountOutMin, deadline]);
  return sendTransaction(chain, { from, to: getContract(token, destination, "l2Bridge"), data });
}

async function completeFromL1(
  chain: LocalChain,
  transfer: SentTransfer & { kind: "from-l1" },
): Promise<TransactionReceipt> {
  const { token, destination, recipient, amount, amountOutMin, deadline, relayer, relayerFee } = transfer;
  const to = getContract(token, destination, "l2Bridge");
  const data = l2BridgeAbi.encodeFunctionData("distribute", [
    recipient,
    amount,
    amountOutMin,
    deadline,
    relayer,
    relayerFee,
  ]);
  return sendTransaction(chain, { from: await readMessenger(chain, to), to, data });
}

async function receiveMessage(
  chain: LocalChain,
  transfer: SentTransfer & { kind: "cctp" },
): Promise<TransactionReceipt> {
  const { source, destination, message } = transfer;
  const attestation = signAttestation(utils.keccak256(message));
  return sendTransaction(chain, {
    from: getBonder("USDC", source, destination),
    to: getContract("USDC", destination, "cctpMessageTransmitter"),
    data: messageTransmitterAbi.encodeFunctionData("receiveMessage", [message, attestation]),
  });
}

/** Withdraws a transfer that was not bonded, as after settlement: sets a root of it alone, then withdraws with a proof. */
export async function withdrawTransfer(
  chains: LocalChains,
  transfer: SentTransfer & { kind: "from-l2" },
): Promise<TransactionReceipt> {
  const { destination, recipient, amount, transferId, transferNonce, bonderFee, amountOutMin, deadline } = transfer;
  const chain = getLocalChain(chains, destination);
  const to = getBridge(transfer.token, destination);
  // The Merkle root of a single transfer is its id.
  await setTransferRoot(chains, transfer, { rootHash: transferId, totalAmount: amount });
  const values = [recipient, amount, transferNonce, bonderFee, amountOutMin, deadline, transferId, amount, 0, [], 1];
  return sendTransaction(chain, { from: recipient, to, data: l2BridgeAbi.encodeFunctionData("withdraw", values) });
}

/** A Merkle root of transfers and the sum of their amounts. */
export interface TransferRoot {
  readonly rootHash: string;
  readonly totalAmount: bigint;
}

/** Commits all transfers of a token from one L2 to one chain that wait for it. Returns their root. */
export async function commitTransfers(
  chains: LocalChains,
  { token, source, destination }: Pick<SentTransfer, "token" | "source" | "destination">,
  from: string,
): Promise<TransferRoot> {
  const to = getContract(token, source, "l2Bridge");
  const data = l2BridgeAbi.encodeFunctionData("commitTransfers", [getChainId(destination)]);
  const receipt = await sendTransaction(getLocalChain(chains, source), { from, to, data });
  const log = receipt.logs.find(({ topics }) => topics[0] === l2BridgeAbi.getEventTopic("TransfersCommitted"));
  if (log === undefined) throw new Error(`${receipt.transactionHash} on ${source} committed no transfers`);
  const { rootHash, totalAmount } = l2BridgeAbi.parseLog({ ...log, topics: [...log.topics] }).args;
  return { rootHash, totalAmount: totalAmount.toBigInt() };
}

/** Lets a root arrive at the bridge of a token on its destination, as the messenger does after its way through L1. */
export async function setTransferRoot(
  chains: LocalChains,
  { token, destination }: Pick<SentTransfer, "token" | "destination">,
  { rootHash, totalAmount }: TransferRoot,
): Promise<void> {
  const chain = getLocalChain(chains, destination);
  const to = getBridge(token, destination);
  const data = l2BridgeAbi.encodeFunctionData("setTransferRoot", [rootHash, totalAmount]);
  await sendTransaction(chain, { from: await readMessenger(chain, to), to, data });
}

function getBridge(token: string, slug: string): string {
  return findContract(token, slug, "l1Bridge") ?? getContract(token, slug, "l2Bridge");
}

async function readMessenger(chain: LocalChain, bridge: string): Promise<string> {
  const returnData = await callContract(chain, bridge, l2BridgeAbi.encodeFunctionData("messenger"));
  return l2BridgeAbi.decodeFunctionResult("messenger", returnData)[0] as string;
}
