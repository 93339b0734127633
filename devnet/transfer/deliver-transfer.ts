import { utils } from "ethers";
import { l2BridgeAbi, messageTransmitterAbi } from "../chain/abi.js";
import {
  findContract,
  getBonder,
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
    const to = findContract(token, destination, "l1Bridge") ?? getContract(token, destination, "l2Bridge");
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

/** Withdraws a transfer that was not bonded, as after settlement: sets its root, then withdraws with a proof. */
export async function withdrawTransfer(
  chains: LocalChains,
  transfer: SentTransfer & { kind: "from-l2" },
): Promise<TransactionReceipt> {
  const { token, destination, recipient, amount, transferId, transferNonce, bonderFee, amountOutMin, deadline } =
    transfer;
  const chain = getLocalChain(chains, destination);
  const to = findContract(token, destination, "l1Bridge") ?? getContract(token, destination, "l2Bridge");
  // The Merkle root of a single transfer is its id.
  const setRoot = l2BridgeAbi.encodeFunctionData("setTransferRoot", [transferId, amount]);
  await sendTransaction(chain, { from: await readMessenger(chain, to), to, data: setRoot });
  const values = [recipient, amount, transferNonce, bonderFee, amountOutMin, deadline, transferId, amount, 0, [], 1];
  return sendTransaction(chain, { from: recipient, to, data: l2BridgeAbi.encodeFunctionData("withdraw", values) });
}

async function readMessenger(chain: LocalChain, bridge: string): Promise<string> {
  const returnData = await callContract(chain, bridge, l2BridgeAbi.encodeFunctionData("messenger"));
  return l2BridgeAbi.decodeFunctionResult("messenger", returnData)[0] as string;
}
