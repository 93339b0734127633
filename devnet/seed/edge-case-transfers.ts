import { utils } from "ethers";
import { l2BridgeAbi, multicall3Abi } from "../chain/abi.js";
import { getChainId, getContract, getLocalChain, getMulticallAddress } from "../chain/local-chains.js";
import { fundAccount, parseTokenAmount } from "../chain/tokens.js";
import { sendTransaction, type TransactionReceipt } from "../chain/transactions.js";
import { withdrawTransfer } from "../transfer/deliver-transfer.js";
import { parseSentTransfers } from "../transfer/sent-transfer.js";
import { describeRoute, type Seed } from "./seed.js";
import type { SeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

const USDT_TRANSFER = { token: "USDT", source: "optimism", amount: "220" } as const;

const withdrawnTransfer: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 25,
  async run(stage) {
    const { receipt, transfer } = await stage.send({ ...USDT_TRANSFER, destination: "arbitrum", minutesAgo: 25 * 60 });
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    await stage.setClock("arbitrum", 24 * 60);
    await withdrawTransfer(stage.chains, transfer);
    return [
      {
        name: "usdt-optimism-arbitrum-withdrawn",
        description: "USDT between L2s that no bonder took, withdrawn after its settlement",
        ...describeRoute("USDT", "optimism", "arbitrum"),
        transferId: transfer.transferId,
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
  async run(stage) {
    const plan = { ...USDT_TRANSFER, destination: "ethereum", minutesAgo: 8 * 60, requestsSwapOnL1: true };
    const { receipt, transfer } = await stage.send(plan);
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    return [
      {
        name: "usdt-optimism-ethereum-unbondable",
        description: "USDT to L1 that asks for a swap there, which no bonder can do",
        ...describeRoute("USDT", "optimism", "ethereum"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "UNBONDABLE",
      },
    ];
  },
};

/** Equal in everything but the transaction: only the order of arrivals tells which of the two has arrived. */
const duplicateTransfers: Seed = {
  source: "ethereum",
  destination: "optimism",
  hoursAgo: 12,
  async run(stage) {
    const minutesAgo = 12 * 60;
    const plan = { token: "ETH", source: "ethereum", destination: "optimism", amount: "0.4", minutesAgo };
    const first = await stage.send(plan);
    const second = await stage.send({ ...plan, minutesAgo: minutesAgo - 1, quotedMinutesAgo: minutesAgo });
    await stage.deliver(first.transfer, minutesAgo - 11);
    const twin = (number: string, { receipt }: { receipt: TransactionReceipt }, arrived: boolean): SeededTransfer => ({
      name: `eth-ethereum-optimism-twin-${number}`,
      description: `ETH from L1, the ${number} of two equal sends, ${arrived ? "completed" : "not arrived yet"}`,
      ...describeRoute("ETH", "ethereum", "optimism"),
      transferId: receipt.transactionHash,
      transactionHash: receipt.transactionHash,
      expectedState: arrived ? "BONDED" : "PENDING",
    });
    return [twin("first", first, true), twin("second", second, false)];
  },
};

/** What an aggregator does: one transaction, several sends; and a look-alike event before them. */
const batchedTransfers: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 16,
  async run(stage) {
    const optimism = getLocalChain(stage.chains, "optimism");
    const amount = parseTokenAmount("HOP", "1500");
    const send = (destination: string): string =>
      l2BridgeAbi.encodeFunctionData("send", [getChainId(destination), stage.recipient, amount, amount / 50n, 0, 0]);
    const multicall = getMulticallAddress("optimism");
    await placeImpostor(stage);
    await stage.setClock("optimism", 16 * 60);
    // The bridge burns what its caller holds, and its caller is the batching contract.
    await fundAccount(stage.chains, "optimism", "HOP", multicall, amount * 2n);
    const bridge = getContract("HOP", "optimism", "l2Bridge");
    const calls = [
      [IMPOSTOR_ADDRESS, false, encodeImpostorCall(stage)],
      [bridge, false, send("arbitrum")],
      [bridge, false, send("ethereum")],
    ];
    const data = multicall3Abi.encodeFunctionData("aggregate3", [calls]);
    const receipt = await sendTransaction(optimism, { from: stage.sender, to: multicall, data });
    const [bonded, pending] = parseSentTransfers("optimism", receipt.logs);
    if (bonded?.kind !== "from-l2" || pending?.kind !== "from-l2") throw new Error("the batch sent no two transfers");
    await stage.deliver(bonded, 16 * 60 - 2);
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
  async run(stage) {
    await placeImpostor(stage);
    await stage.setClock("optimism", 5 * 60);
    const call = { from: stage.sender, to: IMPOSTOR_ADDRESS, data: encodeImpostorCall(stage) };
    const { transactionHash } = await sendTransaction(getLocalChain(stage.chains, "optimism"), call);
    return [
      {
        name: "look-alike",
        description: "Another contract's event in the shape of a Hop transfer: not one",
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
  batchedTransfers,
  duplicateTransfers,
  unbondableTransfer,
  impostorEvent,
];

const IMPOSTOR_ADDRESS = "0x00000000000000000000000000000000c0ffee00";
const impostorTransferId = utils.id("look-alike");

/**
 * Code of a contract that logs whatever it is told: the first four words of the call are the topics, the rest is the
 * data. Copies the rest to memory (36 6080 90 03 80 6080 6000 37), pushes the topics from last to first (6060 35 ...),
 * logs (84 6000 a4).
 */
const IMPOSTOR_CODE = "0x3660809003806080600037606035604035602035600035846000a400";

async function placeImpostor(stage: SeedContext): Promise<void> {
  await getLocalChain(stage.chains, "optimism").rpc("anvil_setCode", [IMPOSTOR_ADDRESS, IMPOSTOR_CODE]);
}

function encodeImpostorCall(stage: SeedContext): string {
  const { data, topics } = l2BridgeAbi.encodeEventLog(l2BridgeAbi.getEvent("TransferSent"), [
    impostorTransferId,
    getChainId("arbitrum"),
    stage.recipient,
    utils.parseEther("1"),
    utils.id("no nonce"),
    0,
    0,
    0,
    0,
  ]);
  return utils.hexConcat([...topics, data]);
}
