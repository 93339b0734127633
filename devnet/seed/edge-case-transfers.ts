import { utils } from "ethers";
import { l2BridgeAbi } from "../chain/abi.js";
import { getChainId, getLocalChain } from "../chain/local-chains.js";
import { parseTokenAmount } from "../chain/tokens.js";
import { sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { sendBatch } from "../transfer/send-batch.js";
import { describeRoute, getTransferId, type Seed } from "./seed.js";
import type { SeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

/** Bonded, but its swap at the destination fails: the recipient gets hTokens. */
const failedSwapTransfer: Seed = {
  source: "polygon",
  destination: "optimism",
  hoursAgo: 14,
  async run(context) {
    const plan = { token: "DAI", source: "polygon", destination: "optimism", amount: "300", minutesAgo: 14 * 60 };
    const { receipt, transfer } = await context.send({ ...plan, failsSwap: true });
    await context.deliver(transfer, 14 * 60 - 2);
    return [
      {
        name: "dai-polygon-optimism-failed-swap",
        description: "DAI between L2s, bonded, paid in hDAI because the swap failed",
        ...describeRoute("DAI", "polygon", "optimism"),
        transferId: getTransferId(transfer, receipt),
        transactionHash: receipt.transactionHash,
        expectedState: "BONDED",
        expectedWithdrawalState: "RECEIVED",
      },
    ];
  },
};

/** Two sends with equal event values: only the order of the deliveries tells which one was delivered. */
const duplicateTransfers: Seed = {
  source: "ethereum",
  destination: "optimism",
  hoursAgo: 12,
  async run(context) {
    const minutesAgo = 12 * 60;
    const plan = { token: "ETH", source: "ethereum", destination: "optimism", amount: "0.4", minutesAgo };
    const first = await context.send(plan);
    const second = await context.send({ ...plan, minutesAgo: minutesAgo - 1, quotedMinutesAgo: minutesAgo });
    await context.deliver(first.transfer, minutesAgo - 11);
    const describeDuplicate = (
      number: string,
      { receipt }: { receipt: TransactionReceipt },
      arrived: boolean,
    ): SeededTransfer => ({
      name: `eth-ethereum-optimism-twin-${number}`,
      description: `ETH from L1, the ${number} of two equal sends, ${arrived ? "completed" : "not completed yet"}`,
      ...describeRoute("ETH", "ethereum", "optimism"),
      transferId: receipt.transactionHash,
      transactionHash: receipt.transactionHash,
      expectedState: arrived ? "BONDED" : "PENDING",
      expectedWithdrawalState: arrived ? "RECEIVED" : "AUTOMATIC",
    });
    return [describeDuplicate("first", first, true), describeDuplicate("second", second, false)];
  },
};

/** Several sends in one transaction, as aggregators do, after a look-alike event. */
const batchedTransfers: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 16,
  async run(context) {
    const common = { token: "HOP", recipient: context.recipient, amount: parseTokenAmount("HOP", "1500") };
    await placeImpostor(context);
    await context.setClock("optimism", 16 * 60);
    const { receipt, transfers } = await sendBatch(
      context.chains,
      "optimism",
      [
        { ...common, destination: "arbitrum" },
        { ...common, destination: "ethereum" },
      ],
      { from: context.sender, firstCall: { to: IMPOSTOR_ADDRESS, data: encodeImpostorCall(context) } },
    );
    const [bonded, pending] = transfers;
    if (bonded === undefined || pending === undefined) throw new Error("the batch did not send two transfers");
    await context.deliver(bonded, 16 * 60 - 2);
    const { transactionHash } = receipt;
    return [
      {
        name: "hop-batch-first",
        description: "HOP, the first of two transfers in one transaction, bonded",
        ...describeRoute("HOP", "optimism", "arbitrum"),
        transferId: bonded.transferId,
        transactionHash,
        expectedState: "BONDED",
        expectedWithdrawalState: "RECEIVED",
      },
      {
        name: "hop-batch-second",
        description: "HOP to L1, the second of two transfers in one transaction, not bonded yet",
        ...describeRoute("HOP", "optimism", "ethereum"),
        transferId: pending.transferId,
        transactionHash,
        expectedState: "PENDING",
        expectedWithdrawalState: "WAITING_FOR_COMMIT",
      },
    ];
  },
};

const impostorEvent: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 5,
  async run(context) {
    await placeImpostor(context);
    await context.setClock("optimism", 5 * 60);
    const call = { from: context.sender, to: IMPOSTOR_ADDRESS, data: encodeImpostorCall(context) };
    const { transactionHash } = await sendTransaction(getLocalChain(context.chains, "optimism"), call);
    return [
      {
        name: "look-alike",
        description: "An event of another contract in the form of a Hop transfer: no transfer",
        ...describeRoute("ETH", "optimism", "arbitrum"),
        transferId: impostorTransferId,
        transactionHash,
        expectedState: "NOT_FOUND",
        expectedWithdrawalState: "NOT_FOUND",
      },
    ];
  },
};

export const edgeCaseSeeds: readonly Seed[] = [failedSwapTransfer, batchedTransfers, duplicateTransfers, impostorEvent];

const IMPOSTOR_ADDRESS = "0x00000000000000000000000000000000c0ffee00";
const impostorTransferId = utils.id("look-alike");

/**
 * Bytecode of a contract that emits any event: the first four words of the calldata are the topics, the rest is the data.
 * Copies the rest to memory (36 6080 90 03 80 6080 6000 37), pushes the topics from last to first (6060 35 ...), then
 * LOG4 (84 6000 a4).
 */
const IMPOSTOR_CODE = "0x3660809003806080600037606035604035602035600035846000a400";

async function placeImpostor(context: SeedContext): Promise<void> {
  await getLocalChain(context.chains, "optimism").rpc("anvil_setCode", [IMPOSTOR_ADDRESS, IMPOSTOR_CODE]);
}

function encodeImpostorCall(context: SeedContext): string {
  const { data, topics } = l2BridgeAbi.encodeEventLog(l2BridgeAbi.getEvent("TransferSent"), [
    impostorTransferId,
    getChainId("arbitrum"),
    context.recipient,
    utils.parseEther("1"),
    utils.id("no nonce"),
    0,
    0,
    0,
    0,
  ]);
  return utils.hexConcat([...topics, data]);
}
