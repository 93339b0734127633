import {
  type CctpMessage,
  type GetWithdrawalRequest,
  type GetWithdrawalResponse,
  type MerkleProof,
  GetWithdrawalResponse_State as State,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients, NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import { isImmutableStatus, type SentTransfer, type TransferStatus } from "../../transfers/status.js";
import type { StatusCache } from "../../transfers/status-cache.js";
import type { Withdrawal } from "../../transfers/withdrawals/withdrawal.js";
import type { WithdrawalFinder } from "../../transfers/withdrawals/withdrawal-finder.js";
import type { Operation } from "../operation.js";
import { parseNetwork, parseRpcUrls, parseTransferIdentifiers } from "../parameters.js";
import { toStatusCachePolicy } from "./get-transfer-status.js";

export function createGetWithdrawal({
  chains,
  statusCache,
  withdrawals,
  now,
}: {
  readonly chains: Pick<ChainClients, "forNetwork" | "withCustomEndpoints">;
  readonly statusCache: Pick<StatusCache, "find">;
  readonly withdrawals: Pick<WithdrawalFinder, "find">;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Operation<GetWithdrawalRequest, GetWithdrawalResponse> {
  return (request, context) => {
    const query = parseTransferIdentifiers(request);
    const network = parseNetwork(request.network);
    const customUrls = parseRpcUrls(network, request.rpcUrl);
    const isPrivate = customUrls.size > 0;
    context.addLogFields({ network: network.slug });

    const find = async (access: NetworkChainClients): Promise<GetWithdrawalResponse> => {
      const { caller, signal } = context;
      const lookup = { network, chains: access, isPrivate, caller, signal, remainingMs: () => context.remainingMs() };
      const status = await statusCache.find(query, lookup);
      if (status === undefined)
        throw new ServiceError("TRANSFER_NOT_FOUND", `no Hop transfer with this id or hash on ${network.slug}`);
      const withdrawal = await withdrawals.find(status, lookup);
      const { source, destination, token } = status.sent;
      context.addLogFields({ token, route: `${source.slug}>${destination.slug}`, state: withdrawal.state });
      context.setCachePolicy(isPrivate ? "private" : toStatusCachePolicy(status, isImmutableStatus(status), now()));
      if (withdrawal.warning !== undefined) context.addWarning(withdrawal.warning);
      return toMessage(status, withdrawal);
    };
    return isPrivate
      ? chains.withCustomEndpoints(network.slug, customUrls, find, context)
      : find(chains.forNetwork(network.slug));
  };
}

function toMessage(
  { sent, delivery, otherTransferIds }: TransferStatus,
  { state, availableAt, proof }: Withdrawal,
): GetWithdrawalResponse {
  const { event, source, destination } = sent;
  const message: GetWithdrawalResponse = {
    $typeName: "hop.bridge.v1.GetWithdrawalResponse",
    transferId: sent.id,
    transactionHash: sent.transactionHash,
    token: sent.token,
    sourceChainSlug: source.slug,
    sourceChainId: source.chainId,
    destinationChainSlug: destination.slug,
    destinationChainId: destination.chainId,
    recipientAddress: event.recipient,
    amount: event.amount.toString(),
    state: State[state],
    receivedTransactionHash: delivery?.transactionHash ?? "",
    otherTransferIds: [...otherTransferIds],
    proof: toProofMessage(sent, proof),
  };
  if (availableAt !== undefined) message.availableAt = BigInt(availableAt);
  return message;
}

function toProofMessage({ event }: SentTransfer, proof: Withdrawal["proof"]): GetWithdrawalResponse["proof"] {
  if (proof === undefined) return { case: undefined };
  if (proof.kind === "cctp") {
    const value: CctpMessage = {
      $typeName: "hop.bridge.v1.CctpMessage",
      messageTransmitterAddress: proof.transmitter,
      message: proof.message,
    };
    if (proof.attestation !== undefined) value.attestation = proof.attestation;
    return { case: "cctp", value };
  }
  const value: MerkleProof = {
    $typeName: "hop.bridge.v1.MerkleProof",
    bridgeAddress: proof.bridge,
    transferNonce: proof.transferNonce,
    bonderFee: event.bonderFee.toString(),
    amountOutMin: event.amountOutMin.toString(),
    deadline: event.deadline.toString(),
    rootHash: proof.rootHash,
    transferRootTotalAmount: proof.totalAmount.toString(),
    transferIdTreeIndex: proof.treeIndex,
    siblings: [...proof.siblings],
    totalLeaves: proof.totalLeaves,
    commitTransactionHash: proof.commitTransactionHash,
  };
  return { case: "merkleProof", value };
}
