import type { GetWithdrawalResponse } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { type WithdrawalContracts, withdrawalContracts } from "../../gen/hop/withdrawal-contracts.js";
import type { components } from "../../gen/openapi.js";
import { encodeWord } from "../chain/abi/abi-encoding.js";
import { isAddressHex, isBytes32 } from "../chain/hex.js";
import { encodeReceiveMessageCall, getCctpDomain, parseBurnMessage, TOKEN_MESSENGERS } from "../hop/cctp.js";
import { rootFromSiblings } from "../hop/merkle-tree.js";
import { computeTransferId, encodeWithdrawCall, type TransferIdentity } from "../hop/settlement.js";

type Json = components["schemas"];
type MerkleProof = Json["MerkleProof"];
type CctpMessage = Omit<Json["CctpMessage"], "attestation"> & { readonly attestation?: string | undefined };

/** A response of GetWithdrawal: a message of Connect or gRPC, or the JSON of GET. */
export type Withdrawal = GetWithdrawalResponse | Json["GetWithdrawalResponse"];

/** A transaction that anybody may send, without value. */
export interface WithdrawalCall {
  readonly chainId: number;
  /** Address of the contract. */
  readonly to: string;
  /** Call data as 0x-prefixed hex. */
  readonly data: string;
}

/** The contracts of both chains of a transfer. */
interface Ends {
  readonly source: WithdrawalContracts;
  readonly destination: WithdrawalContracts;
}

/** Names of the states, by number. */
const STATES: readonly (Json["GetWithdrawalResponseState"] | "STATE_UNSPECIFIED")[] = [
  "STATE_UNSPECIFIED",
  "RECEIVED",
  "WAITING_FOR_COMMIT",
  "WAITING_FOR_ROOT",
  "WITHDRAWABLE",
  "WAITING_FOR_ATTESTATION",
  "REDEEMABLE",
  "BLOCKED",
  "AUTOMATIC",
];

const UINT_PATTERN = /^(0|[1-9][0-9]{0,77})$/;
const ATTESTATION_PATTERN = /^0x([0-9a-f]{2})+$/i;

/**
 * Verifies the proof or the message of a withdrawal, without a network: that the transfer ID is the hash of its parts, the
 * root that of its leaf and siblings, the contract that of the token on the destination chain; of a CCTP message its nonce,
 * chains, contracts and recipient, and that its amount is at most that of the transfer, whose fee is not known here.
 *
 * Compare `transferId` with your own: a response can be right, and about another transfer. Only the chains know whether a
 * root was set and a message attested, so their contracts refuse a wrong `transferRootTotalAmount` or `attestation`.
 * Nothing depends on `state`, times and hashes of transactions.
 *
 * @throws Error that names the field that does not fit, or the state where there is neither proof nor message
 */
export function verifyWithdrawal(withdrawal: Withdrawal): void {
  const { merkleProof, cctp } = readProof(withdrawal);
  const source = findContracts("sourceChain", withdrawal.sourceChainId, withdrawal.sourceChainSlug);
  const destination = findContracts("destinationChain", withdrawal.destinationChainId, withdrawal.destinationChainSlug);
  if (!isAddressHex(withdrawal.recipientAddress)) throw createMismatch("recipientAddress", "is not an address");
  if (merkleProof !== undefined) verifyMerkleProof(withdrawal, merkleProof, { source, destination });
  else if (cctp !== undefined) verifyMessage(withdrawal, cctp, { source, destination });
  else throw createNoProofError(withdrawal);
}

/**
 * Verifies a withdrawal as {@link verifyWithdrawal} does, and encodes the transaction that pays the recipient: `withdraw` of
 * Hop's bridge, or `receiveMessage` of Circle's MessageTransmitter.
 *
 * Encodes every complete proof: with WAITING_FOR_ROOT the call is final already, but reverts until the root has arrived
 * ("BRG: Transfer root not found"), and with BLOCKED it reverts while the contract refuses it.
 *
 * @throws Error what `verifyWithdrawal` throws, or that names the state where there is no attestation
 *
 * @example
 * const withdrawal = await bridge.getWithdrawal({ transferId });
 * const { chainId, to, data } = encodeWithdrawal(withdrawal);
 */
export function encodeWithdrawal(withdrawal: Withdrawal): WithdrawalCall {
  verifyWithdrawal(withdrawal);
  const { destinationChainId: chainId } = withdrawal;
  const { merkleProof, cctp } = readProof(withdrawal);
  if (merkleProof !== undefined) {
    const { transferNonce, rootHash, transferIdTreeIndex: treeIndex, siblings, totalLeaves } = merkleProof;
    const totalAmount = parseUint256("transferRootTotalAmount", merkleProof.transferRootTotalAmount);
    const proof = { transferNonce, rootHash, totalAmount, treeIndex, siblings, totalLeaves };
    const data = encodeWithdrawCall(readIdentity(withdrawal, merkleProof), proof);
    return { chainId, to: merkleProof.bridgeAddress.toLowerCase(), data };
  }
  if (cctp?.attestation === undefined) throw createNoProofError(withdrawal);
  const { messageTransmitterAddress, message, attestation } = cctp;
  if (!ATTESTATION_PATTERN.test(attestation)) throw createMismatch("attestation", "is not hex");
  return {
    chainId,
    to: messageTransmitterAddress.toLowerCase(),
    data: encodeReceiveMessageCall(message, attestation),
  };
}

/** Returns what a withdrawal has of a proof and a message, in either form. */
function readProof(withdrawal: Withdrawal): {
  readonly merkleProof?: MerkleProof | undefined;
  readonly cctp?: CctpMessage | undefined;
} {
  if (!("proof" in withdrawal)) return withdrawal;
  const { case: kind, value } = withdrawal.proof;
  if (kind === "merkleProof") return { merkleProof: value };
  return kind === "cctp" ? { cctp: value } : {};
}

function verifyMerkleProof(withdrawal: Withdrawal, proof: MerkleProof, { source, destination }: Ends): void {
  const { transferId, token } = withdrawal;
  const { bridgeAddress, transferNonce, rootHash, transferIdTreeIndex, siblings, totalLeaves } = proof;
  if (bridgeAddress.toLowerCase() !== destination.bridges[token])
    throw createMismatch("bridgeAddress", `is not Hop's bridge of ${token} there`);
  // The ID does not tell the source. What is sent from Ethereum needs no proof.
  if (source.bridges[token] === undefined || source.slug === "ethereum" || source === destination)
    throw createMismatch("sourceChainId", `is not that of a chain that proves ${token}`);
  if (!isBytes32(transferNonce)) throw createMismatch("transferNonce", "is not 32 bytes");
  if (computeTransferId(readIdentity(withdrawal, proof), transferNonce) !== transferId.toLowerCase())
    throw createMismatch("transferId", "is not the hash of the parts of the transfer");
  const root = rootFromSiblings(transferId, transferIdTreeIndex, siblings, totalLeaves);
  if (root === undefined || root !== rootHash.toLowerCase())
    throw createMismatch("rootHash", "is not the root of the transfer and its siblings");
  parseUint256("transferRootTotalAmount", proof.transferRootTotalAmount);
}

function verifyMessage(
  { transferId, token, recipientAddress, amount }: Withdrawal,
  { messageTransmitterAddress, message }: CctpMessage,
  { source, destination }: Ends,
): void {
  if (messageTransmitterAddress.toLowerCase() !== destination.messageTransmitter)
    throw createMismatch("messageTransmitterAddress", "is not Circle's MessageTransmitter there");
  const burn = parseBurnMessage(message);
  if (burn === undefined) throw createMismatch("message", "is not that of a burn");
  // Sender, recipient and caller follow the nonce. Nobody else than the TokenMessenger sends messages that the other believes.
  const contracts = [TOKEN_MESSENGERS[source.slug] ?? "", TOKEN_MESSENGERS[destination.slug] ?? "", 0n].map(encodeWord);
  const checks: Readonly<Record<string, boolean>> = {
    "source chain": burn.sourceDomain === getCctpDomain(source),
    "destination chain": burn.destinationDomain === getCctpDomain(destination),
    nonce: burn.nonce.toString() === transferId,
    "contracts of Circle": burn.bytes.slice(2 + 2 * 20, 2 + 2 * 116) === contracts.join(""),
    // That contract burns nothing else.
    token: token === "USDC",
    "contract of Hop": burn.burner === source.cctpBridge,
    recipient: burn.mintRecipient === recipientAddress.toLowerCase(),
    amount: burn.amount <= parseUint256("amount", amount),
  };
  for (const [part, isRight] of Object.entries(checks))
    if (!isRight) throw createMismatch("message", `has another ${part} than the transfer`);
}

function readIdentity(
  { destinationChainId, recipientAddress, amount }: Withdrawal,
  proof: MerkleProof,
): TransferIdentity {
  return {
    destinationChainId,
    recipient: recipientAddress,
    amount: parseUint256("amount", amount),
    bonderFee: parseUint256("bonderFee", proof.bonderFee),
    amountOutMin: parseUint256("amountOutMin", proof.amountOutMin),
    deadline: parseUint256("deadline", proof.deadline),
  };
}

/** @throws Error that says whether the slug, the form of the ID or its chain is wrong */
function findContracts(end: "sourceChain" | "destinationChain", chainId: number, slug: string): WithdrawalContracts {
  const contracts = withdrawalContracts[chainId];
  if (contracts?.slug === slug && typeof chainId === "number") return contracts;
  const chainIds = Object.keys(withdrawalContracts).filter((id) => withdrawalContracts[Number(id)]?.slug === slug);
  if (chainIds.length === 0) throw createMismatch(`${end}Slug`, `is no chain of Hop: ${abbreviate(slug)}`);
  const expected = `${slug} has ${chainIds.join(" or ")}`;
  if (!Number.isSafeInteger(chainId))
    throw createMismatch(`${end}Id`, `is not an integer: ${abbreviate(chainId)}, ${expected}`);
  throw createMismatch(`${end}Id`, `is ${chainId}, but ${expected}`);
}

/** Returns a value that may be of any type, as text that fits into a message. */
function abbreviate(value: unknown): string {
  return (typeof value === "string" ? JSON.stringify(value) : String(value)).slice(0, 40);
}

function parseUint256(field: string, text: string): bigint {
  const value = UINT_PATTERN.test(text) ? BigInt(text) : -1n;
  if (value < 0n || value >> 256n !== 0n) throw createMismatch(field, "is not a number of 256 bits");
  return value;
}

function createMismatch(field: string, fault: string): Error {
  return new Error(`the withdrawal does not fit: ${field} ${fault}`);
}

function createNoProofError({ state }: Withdrawal): Error {
  return new Error(
    `a transfer in the state ${STATES[state as number] ?? state} has no complete proof, and so no call data`,
  );
}
