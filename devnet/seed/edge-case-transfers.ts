import { utils } from "ethers";
import { l2Bridge, multicall3 } from "../chain/abi.js";
import { chainIdOf, chainOf, contractOf, multicallOn } from "../chain/local-chains.js";
import { giveTokens, rawAmount } from "../chain/tokens.js";
import { type Receipt, transact } from "../chain/transactions.js";
import { withdraw } from "../transfer/deliver-transfer.js";
import { readSentTransfers } from "../transfer/sent-transfer.js";
import { routeOf, type Seed } from "./seed.js";
import type { Stage } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

const usdt = { token: "USDT", source: "optimism", amount: "220" } as const;

const withdrawn: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 25,
  async run(stage) {
    const { receipt, transfer } = await stage.send({ ...usdt, destination: "arbitrum", minutesAgo: 25 * 60 });
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    await stage.setClock("arbitrum", 24 * 60);
    await withdraw(stage.chains, transfer);
    return [
      {
        name: "usdt-optimism-arbitrum-withdrawn",
        description: "USDT between L2s that no bonder took, withdrawn after its settlement",
        ...routeOf("USDT", "optimism", "arbitrum"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "BONDED",
      },
    ];
  },
};

const unbondable: Seed = {
  source: "optimism",
  destination: "ethereum",
  hoursAgo: 8,
  async run(stage) {
    const plan = { ...usdt, destination: "ethereum", minutesAgo: 8 * 60, swapOnL1: true };
    const { receipt, transfer } = await stage.send(plan);
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    return [
      {
        name: "usdt-optimism-ethereum-unbondable",
        description: "USDT to L1 that asks for a swap there, which no bonder can do",
        ...routeOf("USDT", "optimism", "ethereum"),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: "UNBONDABLE",
      },
    ];
  },
};

/** Equal in everything but the transaction: only the order of arrivals tells which of the two has arrived. */
const twins: Seed = {
  source: "ethereum",
  destination: "optimism",
  hoursAgo: 12,
  async run(stage) {
    const minutesAgo = 12 * 60;
    const plan = { token: "ETH", source: "ethereum", destination: "optimism", amount: "0.4", minutesAgo };
    const first = await stage.send(plan);
    const second = await stage.send({ ...plan, minutesAgo: minutesAgo - 1, quotedMinutesAgo: minutesAgo });
    await stage.deliver(first.transfer, minutesAgo - 11);
    const twin = (number: string, { receipt }: { receipt: Receipt }, arrived: boolean): SeededTransfer => ({
      name: `eth-ethereum-optimism-twin-${number}`,
      description: `ETH from L1, the ${number} of two equal sends, ${arrived ? "completed" : "not arrived yet"}`,
      ...routeOf("ETH", "ethereum", "optimism"),
      transferId: receipt.transactionHash,
      transactionHash: receipt.transactionHash,
      expectedState: arrived ? "BONDED" : "PENDING",
    });
    return [twin("first", first, true), twin("second", second, false)];
  },
};

/** What an aggregator does: one transaction, several sends; and a look-alike event before them. */
const batch: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 16,
  async run(stage) {
    const optimism = chainOf(stage.chains, "optimism");
    const amount = rawAmount("HOP", "1500");
    const send = (destination: string): string =>
      l2Bridge.encodeFunctionData("send", [chainIdOf(destination), stage.recipient, amount, amount / 50n, 0, 0]);
    const multicall = multicallOn("optimism");
    await placeLookAlike(stage);
    await stage.setClock("optimism", 16 * 60);
    // The bridge burns what its caller holds, and its caller is the batching contract.
    await giveTokens(stage.chains, "optimism", "HOP", multicall, amount * 2n);
    const bridge = contractOf("HOP", "optimism", "l2Bridge");
    const calls = [
      [lookAlikeAddress, false, lookAlikeCall(stage)],
      [bridge, false, send("arbitrum")],
      [bridge, false, send("ethereum")],
    ];
    const data = multicall3.encodeFunctionData("aggregate3", [calls]);
    const receipt = await transact(optimism, { from: stage.sender, to: multicall, data });
    const [bonded, pending] = readSentTransfers("optimism", receipt.logs);
    if (bonded?.kind !== "from-l2" || pending?.kind !== "from-l2") throw new Error("the batch sent no two transfers");
    await stage.deliver(bonded, 16 * 60 - 2);
    const { transactionHash } = receipt;
    return [
      {
        name: "hop-batch-first",
        description: "HOP, the first of two transfers in one transaction, bonded",
        ...routeOf("HOP", "optimism", "arbitrum"),
        transferId: bonded.transferId,
        transactionHash,
        expectedState: "BONDED",
      },
      {
        name: "hop-batch-second",
        description: "HOP to L1, the second of two transfers in one transaction, not bonded yet",
        ...routeOf("HOP", "optimism", "ethereum"),
        transferId: pending.transferId,
        transactionHash,
        expectedState: "PENDING",
      },
    ];
  },
};

const lookAlike: Seed = {
  source: "optimism",
  destination: "arbitrum",
  hoursAgo: 5,
  async run(stage) {
    await placeLookAlike(stage);
    await stage.setClock("optimism", 5 * 60);
    const call = { from: stage.sender, to: lookAlikeAddress, data: lookAlikeCall(stage) };
    const { transactionHash } = await transact(chainOf(stage.chains, "optimism"), call);
    return [
      {
        name: "look-alike",
        description: "Another contract's event in the shape of a Hop transfer: not one",
        ...routeOf("ETH", "optimism", "arbitrum"),
        transferId: lookAlikeId,
        transactionHash,
        expectedState: "NOT_FOUND",
      },
    ];
  },
};

export const unusualSeeds: readonly Seed[] = [withdrawn, batch, twins, unbondable, lookAlike];

const lookAlikeAddress = "0x00000000000000000000000000000000c0ffee00";
const lookAlikeId = utils.id("look-alike");

/**
 * Code of a contract that logs whatever it is told: the first four words of the call are the topics, the rest is the
 * data. Copies the rest to memory (36 6080 90 03 80 6080 6000 37), pushes the topics from last to first (6060 35 ...),
 * logs (84 6000 a4).
 */
const lookAlikeCode = "0x3660809003806080600037606035604035602035600035846000a400";

async function placeLookAlike(stage: Stage): Promise<void> {
  await chainOf(stage.chains, "optimism").rpc("anvil_setCode", [lookAlikeAddress, lookAlikeCode]);
}

function lookAlikeCall(stage: Stage): string {
  const { data, topics } = l2Bridge.encodeEventLog(l2Bridge.getEvent("TransferSent"), [
    lookAlikeId,
    chainIdOf("arbitrum"),
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
