import { decodeUintAt } from "../../chain/abi/abi-encoding.js";
import type { RpcCall } from "../../chain/chain-client.js";
import { readRequiredReceipt } from "../../chain/read/chain-reads.js";
import { readContracts } from "../../chain/read/contract-reads.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import { type BurnMessage, decodeBurnMessage, encodeReceiveMessageCall, getCctpDomain } from "../../hop/cctp.js";
import { decodeSentEvent, encodeUsedNoncesCall } from "../../hop/transfer-events.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { getPayoutContracts } from "../details/payout.js";
import { incompleteChainDataError } from "../sources/chain/search-context.js";
import type { LookupContext } from "../sources/transfer-source.js";
import type { SentTransfer } from "../status.js";
import { findRefusal } from "./refusal.js";
import { type CctpProof, FailedCheckError, type Withdrawal } from "./withdrawal.js";

/** Words with which a MessageTransmitter refuses an attestation that is not one, or a message that it has just called unused. */
const CONTRADICTIONS = /attestation|signature|attester|ECDSA|Nonce already used|message version|destination domain/i;
const SWITCHED_OFF =
  "it is not known what is attested: the CCTP attestation source is switched off (ATTESTATION_API_URL)";

/** undefined: the source is switched off. */
type Attestations = Pick<AttestationClient, "findCurrent"> | undefined;

/**
 * Reads what is left to do for a CCTP transfer that has not been received: the message of its burn, and its attestation.
 * @param waitMs longest wait for the attestation, in milliseconds: the chain is read after it, and may say that no
 *   attestation is needed any more
 * @throws FailedCheckError when what was read does not fit
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a chain or the source does not answer
 */
export async function readCctpWithdrawal(
  sent: SentTransfer,
  attestations: Attestations,
  waitMs: number,
  context: LookupContext,
): Promise<Withdrawal> {
  const { destination } = sent;
  const message = await readMessage(sent, context);
  const transmitter = getPayoutContracts(context.network, sent.token, destination).messageTransmitter;
  if (transmitter === undefined) throw new FailedCheckError("message", sent.source.slug);
  const { attestation, outage } = await readAttestation(message, attestations, waitMs, context);
  const proof: CctpProof = { kind: "cctp", transmitter, message: message.bytes, attestation };
  const used = { to: transmitter, data: encodeUsedNoncesCall(message.sourceDomain, message.nonce) };
  const otherCalls: RpcCall[] = [];
  if (attestation !== undefined) {
    const data = encodeReceiveMessageCall(message.bytes, attestation);
    otherCalls.push({ method: "eth_call", params: [{ to: transmitter, data }, "latest"] });
  }
  const client = context.chains.getClient(destination.slug);
  const reads = { contractCalls: [used], otherCalls };
  const { returnData, outcomes } = await readContracts(client, destination.multicallAddress, reads, context.signal);
  const usedNonce = decodeUintAt(returnData[0] ?? "0x", 0);
  if (usedNonce === undefined) throw incompleteChainDataError(destination);
  if (usedNonce !== 0n) return { state: "RECEIVED" };
  if (outage !== undefined) throw outage;
  if (attestation === undefined)
    return { state: "WAITING_FOR_ATTESTATION", proof, ...(attestations === undefined && { warning: SWITCHED_OFF }) };
  const refusal = findRefusal(outcomes[0], destination.slug);
  if (refusal === undefined) return { state: "REDEEMABLE", proof };
  if (CONTRADICTIONS.test(refusal)) throw new FailedCheckError("receive", destination.slug);
  return { state: "BLOCKED", proof, warning: `the contract on ${destination.slug} refuses the message: ${refusal}` };
}

/** Reads the attestation of a message. @returns also why it cannot be had */
async function readAttestation(
  { hash }: BurnMessage,
  attestations: Attestations,
  waitMs: number,
  { signal }: LookupContext,
): Promise<{ readonly attestation?: string | undefined; readonly outage?: unknown }> {
  const scope = createAbortScope(signal, waitMs);
  try {
    return { attestation: await attestations?.findCurrent(hash, scope.signal) };
  } catch (outage) {
    signal.throwIfAborted();
    return { outage };
  } finally {
    scope.cancel();
  }
}

/** Reads the message of a transfer from the receipt of its burn, which can hold others. */
async function readMessage(
  { id, token, source, destination, transactionHash, event }: SentTransfer,
  { network, chains, signal }: LookupContext,
): Promise<BurnMessage> {
  const { logs } = await readRequiredReceipt(chains.getClient(source.slug), transactionHash, signal);
  const { messageTransmitter } = getPayoutContracts(network, token, source);
  const message = logs
    .filter(({ address }) => address === messageTransmitter)
    .map(decodeBurnMessage)
    .find((each) => each?.nonce === BigInt(id));
  if (
    message === undefined ||
    message.sourceDomain !== getCctpDomain(source) ||
    message.destinationDomain !== getCctpDomain(destination) ||
    message.mintRecipient !== event.recipient ||
    message.amount !== event.amount - event.bonderFee ||
    !logs.some((log) => log.address === message.burner && decodeSentEvent(log)?.transferId === id)
  )
    throw new FailedCheckError("message", source.slug);
  return message;
}
