import { utils } from "ethers";
import { l2BridgeAbi, multicall3Abi } from "../chain/abi.js";
import { getChainId, getContract, getLocalChain, getMulticallAddress } from "../chain/local-chains.js";
import { fundAccount, parseTokenAmount } from "../chain/tokens.js";
import { sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { commitTransfers, setTransferRoot, withdrawTransfer } from "../transfer/deliver-transfer.js";
import { parseSentTransfers } from "../transfer/sent-transfer.js";
import { describeRoute, getTransferId, type Seed } from "./seed.js";
import type { SeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

const USDT_TRANSFER = { token: "USDT", source: "optimism", amount: "220" } as const;

const withdrawnTransfer: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 25,
  async run(context) {
    const { receipt, transfer } = await context.send({
      ...USDT_TRANSFER,
      destination: "arbitrum",
      minutesAgo: 25 * 60,
    });
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    await context.setClock("arbitrum", 24 * 60);
    await withdrawTransfer(context.chains, transfer);
    return [
      {
        name: "usdt-optimism-arbitrum-withdrawn",
        description: "USDT between L2s, not bonded, withdrawn after settlement",
        ...describeRoute("USDT", "optimism", "arbitrum"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "BONDED",
      },
    ];
  },
};

/** Committed by the source, and its root has arrived at the destination, but nobody has withdrawn it. */
const withdrawableTransfer: Seed = {
  source: "optimism",
  destination: "polygon",
  hoursAgo: 23,
  async run(context) {
    const { receipt, transfer } = await context.send({
      ...USDT_TRANSFER,
      destination: "polygon",
      minutesAgo: 23 * 60,
    });
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    await context.setClock("optimism", 22 * 60 + 40);
    const root = await commitTransfers(context.chains, transfer, context.sender);
    await context.setClock("polygon", 22 * 60 + 20);
    await setTransferRoot(context.chains, transfer, root);
    return [
      {
        name: "usdt-optimism-polygon-withdrawable",
        description: "USDT between L2s, not bonded, can be withdrawn",
        ...describeRoute("USDT", "optimism", "polygon"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "PENDING",
      },
    ];
  },
};

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
      },
    ];
  },
};

const unbondableTransfer: Seed = {
  source: "optimism",
  destination: "ethereum",
  hoursAgo: 8,
  async run(context) {
    const plan = { ...USDT_TRANSFER, destination: "ethereum", minutesAgo: 8 * 60, requestsSwapOnL1: true };
    const { receipt, transfer } = await context.send(plan);
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    return [
      {
        name: "usdt-optimism-ethereum-unbondable",
        description: "USDT to L1 with a swap there, which no bonder can do",
        ...describeRoute("USDT", "optimism", "ethereum"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "UNBONDABLE",
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
    const optimism = getLocalChain(context.chains, "optimism");
    const amount = parseTokenAmount("HOP", "1500");
    const send = (destination: string): string =>
      l2BridgeAbi.encodeFunctionData("send", [getChainId(destination), context.recipient, amount, amount / 50n, 0, 0]);
    const multicall = getMulticallAddress("optimism");
    await placeImpostor(context);
    await context.setClock("optimism", 16 * 60);
    // The bridge burns tokens of its caller, which is the multicall contract.
    await fundAccount(context.chains, "optimism", "HOP", multicall, amount * 2n);
    const bridge = getContract("HOP", "optimism", "l2Bridge");
    const calls = [
      [IMPOSTOR_ADDRESS, false, encodeImpostorCall(context)],
      [bridge, false, send("arbitrum")],
      [bridge, false, send("ethereum")],
    ];
    const data = multicall3Abi.encodeFunctionData("aggregate3", [calls]);
    const receipt = await sendTransaction(optimism, { from: context.sender, to: multicall, data });
    const [bonded, pending] = parseSentTransfers("optimism", receipt.logs);
    if (bonded?.kind !== "from-l2" || pending?.kind !== "from-l2")
      throw new Error("the batch did not send two transfers");
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
      },
      {
        name: "hop-batch-second",
        description: "HOP to L1, the second of two transfers in one transaction, not bonded yet",
        ...describeRoute("HOP", "optimism", "ethereum"),
        transferId: pending.transferId,
        transactionHash,
        expectedState: "PENDING",
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
      },
    ];
  },
};

export const edgeCaseSeeds: readonly Seed[] = [
  withdrawnTransfer,
  withdrawableTransfer,
  failedSwapTransfer,
  batchedTransfers,
  duplicateTransfers,
  unbondableTransfer,
  impostorEvent,
];

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
