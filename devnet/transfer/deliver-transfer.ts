import { utils } from "ethers";
import { merkleSiblings } from "../../src/hop/merkle-tree.js";
import { l1BridgeAbi, l2BridgeAbi, messageTransmitterAbi } from "../chain/abi.js";
import {
  findContract,
  getBonder,
  getChainId,
  getContract,
  getLocalChain,
  type LocalChain,
  type LocalChains,
} from "../chain/local-chains.js";
import { callContract, type EventLog, sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { signAttestation } from "../deploy/attestation.js";
import type { L2Transfer, SentTransfer } from "./sent-transfer.js";

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

async function bond(chain: LocalChain, transfer: L2Transfer): Promise<TransactionReceipt | undefined> {
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

/** The Merkle root of committed transfers, the sum of their amounts, and their ids in the order of the leaves. */
export interface TransferRoot {
  readonly rootHash: string;
  readonly totalAmount: bigint;
  /** Unix seconds. */
  readonly committedAt: number;
  readonly transferIds: readonly string[];
}

/** Enough for the 1,024 transfers of a full list. */
const COMMIT_GAS_LIMIT = 30_000_000;

/** A token's bridge on an L2, and the destination of the transfers that wait there. */
export type CommitRoute = Pick<SentTransfer, "token" | "source" | "destination">;

/**
 * Commits all transfers of a token from one L2 to one chain that wait for it.
 *
 * @param from A bonder of the source; anybody if the last such commit was four hours ago.
 */
export async function commitTransfers(chains: LocalChains, route: CommitRoute, from: string): Promise<TransferRoot> {
  const { token, source, destination } = route;
  const chain = getLocalChain(chains, source);
  const to = getContract(token, source, "l2Bridge");
  const data = l2BridgeAbi.encodeFunctionData("commitTransfers", [getChainId(destination)]);
  const { blockNumber } = await sendTransaction(chain, { from, to, data, gasLimit: COMMIT_GAS_LIMIT });
  const root = (await readTransferRoots(chains, route)).findLast((each) => each.blockNumber === Number(blockNumber));
  if (root === undefined) throw new Error(`block ${blockNumber} of ${source} has no committed transfers`);
  return root;
}

/** Reads all roots of a token from one L2 to one chain, oldest first. */
export async function readTransferRoots(
  chains: LocalChains,
  { token, source, destination }: CommitRoute,
): Promise<(TransferRoot & { readonly blockNumber: number })[]> {
  const [sent, committed] = ["TransferSent", "TransfersCommitted"].map((name) => l2BridgeAbi.getEventTopic(name));
  const logs = (await getLocalChain(chains, source).rpc("eth_getLogs", [
    { address: getContract(token, source, "l2Bridge"), fromBlock: "0x0", topics: [[sent, committed]] },
  ])) as (EventLog & { readonly blockNumber: string })[];
  const roots: (TransferRoot & { readonly blockNumber: number })[] = [];
  let transferIds: string[] = [];
  for (const log of logs) {
    const { name, args } = l2BridgeAbi.parseLog({ ...log, topics: [...log.topics] });
    if (Number(args.chainId ?? args.destinationChainId) !== getChainId(destination)) continue;
    if (name === "TransferSent") transferIds.push(args.transferId as string);
    else {
      const { rootHash, totalAmount, rootCommittedAt } = args;
      roots.push({
        rootHash: rootHash as string,
        totalAmount: totalAmount.toBigInt(),
        committedAt: Number(rootCommittedAt),
        transferIds,
        blockNumber: Number(log.blockNumber),
      });
      transferIds = [];
    }
  }
  return roots;
}

/** Lets a root arrive at the bridge of a token on its destination, as the messengers do after its exit to L1. */
export async function setTransferRoot(
  chains: LocalChains,
  { token, source, destination }: CommitRoute,
  { rootHash, totalAmount, committedAt }: TransferRoot,
): Promise<void> {
  const chain = getLocalChain(chains, destination);
  const to = getBridge(token, destination);
  const data =
    destination === "ethereum"
      ? l1BridgeAbi.encodeFunctionData("confirmTransferRoot", [
          getChainId(source),
          rootHash,
          getChainId(destination),
          totalAmount,
          committedAt,
        ])
      : l2BridgeAbi.encodeFunctionData("setTransferRoot", [rootHash, totalAmount]);
  await sendTransaction(chain, { from: await readMessenger(chain, to), to, data });
}

/** Empties a root that arrived at least eight weeks ago, as governance can do. */
export async function rescueTransferRoot(
  chains: LocalChains,
  { token, destination }: CommitRoute,
  { rootHash, totalAmount }: TransferRoot,
): Promise<void> {
  const chain = getLocalChain(chains, destination);
  const to = getBridge(token, destination);
  const from = await readMessenger(chain, to);
  const data = l2BridgeAbi.encodeFunctionData("rescueTransferRoot", [rootHash, totalAmount, from]);
  await sendTransaction(chain, { from, to, data });
}

/** Withdraws a transfer whose root has arrived. */
export async function withdrawTransfer(
  chains: LocalChains,
  transfer: L2Transfer,
  { rootHash, totalAmount, transferIds }: TransferRoot,
): Promise<TransactionReceipt> {
  const { destination, recipient, amount, transferId, transferNonce, bonderFee, amountOutMin, deadline } = transfer;
  const parts = [recipient, amount, transferNonce, bonderFee, amountOutMin, deadline];
  const index = transferIds.indexOf(transferId);
  const proof = [rootHash, totalAmount, index, merkleSiblings(transferIds, index), transferIds.length];
  return sendTransaction(getLocalChain(chains, destination), {
    from: recipient,
    to: getBridge(transfer.token, destination),
    data: l2BridgeAbi.encodeFunctionData("withdraw", [...parts, ...proof]),
  });
}

function getBridge(token: string, slug: string): string {
  return findContract(token, slug, "l1Bridge") ?? getContract(token, slug, "l2Bridge");
}

async function readMessenger(chain: LocalChain, bridge: string): Promise<string> {
  const returnData = await callContract(chain, bridge, l2BridgeAbi.encodeFunctionData("messenger"));
  return l2BridgeAbi.decodeFunctionResult("messenger", returnData)[0] as string;
}
