import { utils } from "ethers";
import { l2Bridge, messageTransmitter } from "../chain/abi.js";
import {
  bonderOf,
  chainOf,
  contractOf,
  findContract,
  type LocalChain,
  type LocalChains,
} from "../chain/local-chains.js";
import { call, type Receipt, transact } from "../chain/transactions.js";
import { attest } from "../deploy/attestation.js";
import type { SentTransfer } from "./sent-transfer.js";

/**
 * Brings a transfer to its destination as on the real chains: a bonder fronts it (from an L2), the messenger passes it
 * on (from L1), or the attested message is handed in (CCTP). Gives undefined for what no bonder can front: towards L1
 * there is nobody to swap.
 */
export async function deliver(chains: LocalChains, transfer: SentTransfer): Promise<Receipt | undefined> {
  const chain = chainOf(chains, transfer.destination);
  if (transfer.kind === "cctp") return receiveMessage(chain, transfer);
  if (transfer.kind === "from-l1") return completeFromL1(chain, transfer);
  return bond(chain, transfer);
}

async function bond(chain: LocalChain, transfer: SentTransfer & { kind: "from-l2" }): Promise<Receipt | undefined> {
  const { token, source, destination, recipient, amount, transferNonce, bonderFee, amountOutMin, deadline } = transfer;
  const from = bonderOf(token, source, destination);
  const common = [recipient, amount, transferNonce, bonderFee];
  if (amountOutMin === 0n && deadline === 0n) {
    const to = findContract(token, destination, "l1Bridge") ?? contractOf(token, destination, "l2Bridge");
    return transact(chain, { from, to, data: l2Bridge.encodeFunctionData("bondWithdrawal", common) });
  }
  if (destination === "ethereum") return undefined;
  const data = l2Bridge.encodeFunctionData("bondWithdrawalAndDistribute", [...common, amountOutMin, deadline]);
  return transact(chain, { from, to: contractOf(token, destination, "l2Bridge"), data });
}

async function completeFromL1(chain: LocalChain, transfer: SentTransfer & { kind: "from-l1" }): Promise<Receipt> {
  const { token, destination, recipient, amount, amountOutMin, deadline, relayer, relayerFee } = transfer;
  const to = contractOf(token, destination, "l2Bridge");
  const data = l2Bridge.encodeFunctionData("distribute", [
    recipient,
    amount,
    amountOutMin,
    deadline,
    relayer,
    relayerFee,
  ]);
  return transact(chain, { from: await messengerOf(chain, to), to, data });
}

async function receiveMessage(chain: LocalChain, transfer: SentTransfer & { kind: "cctp" }): Promise<Receipt> {
  const { source, destination, message } = transfer;
  const attestation = attest(utils.keccak256(message));
  return transact(chain, {
    from: bonderOf("USDC", source, destination),
    to: contractOf("USDC", destination, "cctpMessageTransmitter"),
    data: messageTransmitter.encodeFunctionData("receiveMessage", [message, attestation]),
  });
}

/** Pays a transfer that nobody bonded, as after its settlement: its root arrives, then anybody can withdraw. */
export async function withdraw(chains: LocalChains, transfer: SentTransfer & { kind: "from-l2" }): Promise<Receipt> {
  const { token, destination, recipient, amount, transferId, transferNonce, bonderFee, amountOutMin, deadline } =
    transfer;
  const chain = chainOf(chains, destination);
  const to = findContract(token, destination, "l1Bridge") ?? contractOf(token, destination, "l2Bridge");
  // The root of a single transfer is its id.
  const setRoot = l2Bridge.encodeFunctionData("setTransferRoot", [transferId, amount]);
  await transact(chain, { from: await messengerOf(chain, to), to, data: setRoot });
  const values = [recipient, amount, transferNonce, bonderFee, amountOutMin, deadline, transferId, amount, 0, [], 1];
  return transact(chain, { from: recipient, to, data: l2Bridge.encodeFunctionData("withdraw", values) });
}

async function messengerOf(chain: LocalChain, bridge: string): Promise<string> {
  const answer = await call(chain, bridge, l2Bridge.encodeFunctionData("messenger"));
  return l2Bridge.decodeFunctionResult("messenger", answer)[0] as string;
}
