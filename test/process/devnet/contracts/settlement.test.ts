import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { getBonder, getChainId, getContract } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import type { TransactionReceipt } from "../../../../devnet/chain/transactions.js";
import { messenger } from "../../../../devnet/deploy/accounts.js";
import { merkleRoot, merkleSiblings } from "../../../../src/hop/merkle-tree.js";
import { createTestChains, parseLog } from "./contract-chains.js";

// How Hop's contracts settle transfers: commits on the source, roots on L1 and on the destination, withdrawals and bonds.

const abi = sdk.L2_Bridge__factory.createInterface();
const l1Abi = sdk.L1_ERC20_Bridge__factory.createInterface();
const chains = createTestChains(["ethereum", "optimism"]);

const stranger = "0x00000000000000000000000000000000000A0001";
const recipient = "0x00000000000000000000000000000000000B0002";
const bridge = getContract("HOP", "optimism", "l2Bridge");
const l1Bridge = getContract("HOP", "ethereum", "l1Bridge");
const bonder = getBonder("HOP", "ethereum", "optimism");
const l1Bonder = getBonder("HOP", "optimism", "ethereum");
const FOUR_HOURS = 4 * 3_600;
const AMOUNT = 10n ** 18n;
const FEE = AMOUNT / 100n;

beforeAll(() => chains.start());
afterAll(() => chains.stop());

const read = (name: string, values: readonly unknown[]): Promise<bigint> =>
  chains.read("optimism", bridge, abi, name, values);
const send = (data: string, from = stranger): Promise<TransactionReceipt> =>
  chains.send("optimism", { from, to: bridge, data });
const commit = (destination: string): string => abi.encodeFunctionData("commitTransfers", [getChainId(destination)]);

async function sendTransfer(destination: string): Promise<utils.Result> {
  await fundAccount(chains.bySlug, "optimism", "HOP", stranger, AMOUNT);
  const data = abi.encodeFunctionData("send", [getChainId(destination), recipient, AMOUNT, FEE, 0, 0]);
  return parseLog(abi, (await send(data)).logs.at(-1)).args;
}

/** Returns the reason why a call at the newest block reverts. */
async function readRevert(slug: "ethereum" | "optimism", from: string, data: string): Promise<string> {
  const call = { from, to: slug === "ethereum" ? l1Bridge : bridge, data };
  return chains
    .on(slug)
    .rpc("eth_call", [call, "latest"])
    .then(() => "", String);
}

/** Mines a block at that time. */
async function mineAt(slug: "ethereum" | "optimism", time: bigint): Promise<void> {
  await chains.on(slug).rpc("evm_setNextBlockTimestamp", [utils.hexValue(time)]);
  await chains.on(slug).rpc("evm_mine");
}

describe("commits", () => {
  test("are anybody's at first, then a bonder's until four hours have passed", async () => {
    expect(await read("minimumForceCommitDelay", [])).toBe(BigInt(FOUR_HOURS));
    expect(await readRevert("optimism", stranger, commit("base"))).toContain("L2_BRG: Must commit at least 1 Transfer");
    await sendTransfer("base");
    await send(commit("base"));
    const firstTime = await read("lastCommitTimeForChainId", [getChainId("base")]);
    await sendTransfer("base");
    const refused = "L2_BRG: Only Bonder can commit before min delay";
    expect(await readRevert("optimism", stranger, commit("base"))).toContain(refused);
    expect(await readRevert("optimism", bonder, commit("base"))).toBe("");
    await mineAt("optimism", firstTime + BigInt(FOUR_HOURS));
    expect(await readRevert("optimism", stranger, commit("base"))).toContain(refused);
    await mineAt("optimism", firstTime + BigInt(FOUR_HOURS) + 1n);
    expect(await readRevert("optimism", stranger, commit("base"))).toBe("");
  });

  test("take the list of one destination, whose indices restart", async () => {
    const sent = [await sendTransfer("gnosis"), await sendTransfer("gnosis"), await sendTransfer("gnosis")];
    const other = await sendTransfer("arbitrum");
    expect(sent.map(({ index }) => Number(index))).toEqual([0, 1, 2]);
    expect(Number(other.index)).toBe(0);
    const gnosis = getChainId("gnosis");
    expect(await read("pendingAmountForChainId", [gnosis])).toBe(3n * AMOUNT);
    expect(await read("pendingTransferIdsForChainId", [gnosis, 2])).toBe(BigInt(sent[2]?.transferId));
    const { logs } = await send(commit("gnosis"));
    const { rootHash, totalAmount } = parseLog(abi, logs[0]).args;
    expect(rootHash).toBe(merkleRoot(sent.map(({ transferId }) => transferId)));
    expect(totalAmount.toBigInt()).toBe(3n * AMOUNT);
    expect(await read("pendingAmountForChainId", [gnosis])).toBe(0n);
    await expect(read("pendingTransferIdsForChainId", [gnosis, 0])).rejects.toThrow();
    expect(await read("pendingTransferIdsForChainId", [getChainId("arbitrum"), 0])).toBe(BigInt(other.transferId));
    expect(Number((await sendTransfer("gnosis")).index)).toBe(0);
  });

  test("of a full list come before the transfer that found it full, and do not count for the delay", async () => {
    await send(abi.encodeFunctionData("setMaxPendingTransfers", [2]), messenger);
    const first = [await sendTransfer("polygon"), await sendTransfer("polygon")];
    await fundAccount(chains.bySlug, "optimism", "HOP", stranger, AMOUNT);
    const { logs } = await send(abi.encodeFunctionData("send", [getChainId("polygon"), recipient, AMOUNT, FEE, 0, 0]));
    const events = logs.filter(({ address }) => address.toLowerCase() === bridge.toLowerCase());
    expect(events.map((log) => parseLog(abi, log).name)).toEqual(["TransfersCommitted", "TransferSent"]);
    expect(parseLog(abi, events[0]).args.rootHash).toBe(merkleRoot(first.map(({ transferId }) => transferId)));
    expect(Number(parseLog(abi, events[1]).args.index)).toBe(0);
    expect(await read("lastCommitTimeForChainId", [getChainId("polygon")])).toBe(0n);
    await send(abi.encodeFunctionData("setMaxPendingTransfers", [1024]), messenger);
  });
});

describe("a root on L1", () => {
  let rootHash: string;
  beforeEach(({ task }) => {
    rootHash = utils.id(task.name);
  });
  const onL1 = (from: string, name: "bondTransferRoot" | "confirmTransferRoot", values: readonly unknown[]) =>
    ({ from, to: l1Bridge, data: l1Abi.encodeFunctionData(name as never, values as never) }) as const;
  const readCreatedAt = async (): Promise<bigint> => {
    const data = l1Abi.encodeFunctionData("getTransferRoot", [rootHash, AMOUNT]);
    const result = (await chains.on("ethereum").rpc("eth_call", [{ to: l1Bridge, data }, "latest"])) as string;
    return l1Abi.decodeFunctionResult("getTransferRoot", result)[0].createdAt.toBigInt();
  };

  test("is set by a bonder, and later only confirmed", async () => {
    const bond = onL1(l1Bonder, "bondTransferRoot", [rootHash, 1, AMOUNT]);
    const { logs } = await chains.send("ethereum", bond);
    expect(logs.map((log) => parseLog(l1Abi, log).name)).toEqual(["TransferRootSet", "TransferRootBonded"]);
    expect(await readCreatedAt()).toBeGreaterThan(0n);
    expect(await readRevert("ethereum", l1Bonder, bond.data)).toContain("L1_BRG: TransferRoot has already been bonded");

    const confirm = onL1(messenger, "confirmTransferRoot", [10, rootHash, 1, AMOUNT, 1_700_000_000]);
    const confirmed = await chains.send("ethereum", confirm);
    expect(confirmed.logs.map((log) => parseLog(l1Abi, log).name)).toEqual(["TransferRootConfirmed"]);
    expect(await readRevert("ethereum", messenger, confirm.data)).toContain("L1_BRG: TransferRoot already confirmed");
  });

  test("is set when it is confirmed without a bond", async () => {
    const confirm = onL1(messenger, "confirmTransferRoot", [10, rootHash, 1, AMOUNT, 1_700_000_000]);
    const { logs } = await chains.send("ethereum", confirm);
    expect(logs.map((log) => parseLog(l1Abi, log).name)).toEqual(["TransferRootSet", "TransferRootConfirmed"]);
  });

  test("towards an L2 is only forwarded", async () => {
    await chains.send("ethereum", onL1(l1Bonder, "bondTransferRoot", [rootHash, getChainId("optimism"), AMOUNT]));
    expect(await readCreatedAt()).toBe(0n);
  });
});

describe("a withdrawal", () => {
  const nonces = [utils.id("first"), utils.id("second")];
  const idOf = (nonce: string): string => {
    const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
    const values = [getChainId("optimism"), recipient, AMOUNT, nonce, FEE, 0, 2n ** 200n];
    return utils.keccak256(utils.defaultAbiCoder.encode(types, values));
  };
  const leaves = nonces.map(idOf);
  const rootHash = merkleRoot(leaves);
  const encode = (nonce: string, index = nonces.indexOf(nonce), total = 2n * AMOUNT, count = 2): string =>
    abi.encodeFunctionData("withdraw", [
      ...([recipient, AMOUNT, nonce, FEE, 0, 2n ** 200n] as const),
      ...([rootHash, total, index, merkleSiblings(leaves, nonces.indexOf(nonce)), count] as const),
    ]);
  const [first = "", second = ""] = nonces;
  const hToken = getContract("HOP", "optimism", "l2HopBridgeToken");

  test("pays the whole amount once, and reverts with the words of Hop's contracts", async () => {
    const refuse = (data: string): Promise<string> => readRevert("optimism", stranger, data);
    expect(await refuse(encode(first, 1))).toContain("BRG: Invalid transfer proof");
    expect(await refuse(encode(first))).toContain("BRG: Transfer root not found");
    expect(await refuse(encode(first, 0, undefined, 0))).toContain(
      "Lib_MerkleTree: Total leaves must be greater than zero.",
    );
    expect(await refuse(encode(first, 2))).toContain("Lib_MerkleTree: Index out of bounds.");
    expect(await refuse(encode(first, 0, undefined, 3))).toContain("Lib_MerkleTree: Total siblings does not correctly");
    const setRoot = abi.encodeFunctionData("setTransferRoot", [rootHash, 2n * AMOUNT]);
    await send(setRoot, messenger);
    expect(await refuse(encode(first, 0, AMOUNT))).toContain("BRG: Transfer root not found");
    expect(await readRevert("optimism", messenger, setRoot)).toContain("BRG: Transfer root already set");

    const before = await chains.tokens("optimism", hToken, recipient);
    const { logs } = await send(encode(first));
    expect(parseLog(abi, logs.at(-1))).toMatchObject({ name: "Withdrew", args: { transferId: leaves[0] } });
    expect(await chains.tokens("optimism", hToken, recipient)).toBe(before + AMOUNT);
    expect(await read("isTransferIdSpent", [leaves[0]])).toBe(1n);
    expect(await refuse(encode(first))).toContain("BRG: The transfer has already been withdrawn");
  });

  test("exceeds a root that was rescued, which takes eight weeks", async () => {
    const rescue = abi.encodeFunctionData("rescueTransferRoot", [rootHash, 2n * AMOUNT, messenger]);
    const result = (await chains
      .on("optimism")
      .rpc("eth_call", [
        { to: bridge, data: abi.encodeFunctionData("getTransferRoot", [rootHash, 2n * AMOUNT]) },
        "latest",
      ])) as string;
    const createdAt = abi.decodeFunctionResult("getTransferRoot", result)[0].createdAt.toBigInt();
    const rescuableAt = createdAt + 8n * 7n * 24n * 3_600n;
    await mineAt("optimism", rescuableAt - 1n);
    const tooEarly = "BRG: TransferRoot cannot be rescued before the Rescue Delay";
    expect(await readRevert("optimism", messenger, rescue)).toContain(tooEarly);
    await mineAt("optimism", rescuableAt);
    await send(rescue, messenger);
    expect(await readRevert("optimism", stranger, encode(second))).toContain(
      "BRG: Withdrawal exceeds TransferRoot total",
    );
  });
});

describe("a bond", () => {
  test("counts against its root when it is settled, alone or with the other transfers of the root", async () => {
    const sent: string[] = [];
    for (const name of ["alone", "first of two", "second of two"]) {
      const data = abi.encodeFunctionData("bondWithdrawal", [recipient, AMOUNT, utils.id(name), FEE]);
      const { logs } = await send(data, bonder);
      sent.push(
        parseLog(
          abi,
          logs.find(({ topics }) => topics[0] === abi.getEventTopic("WithdrawalBonded")),
        ).args.transferId,
      );
    }
    const credit = await read("getCredit", [bonder]);
    const [alone = "", ...two] = sent;
    for (const [hash, total] of [
      [alone, AMOUNT],
      [merkleRoot(two), 2n * AMOUNT],
    ] as const) {
      await send(abi.encodeFunctionData("setTransferRoot", [hash, total]), messenger);
    }
    await send(abi.encodeFunctionData("settleBondedWithdrawal", [bonder, alone, alone, AMOUNT, 0, [], 1]));
    expect(await read("getCredit", [bonder])).toBe(credit + AMOUNT);
    const { logs } = await send(abi.encodeFunctionData("settleBondedWithdrawals", [bonder, two, 2n * AMOUNT]));
    expect(parseLog(abi, logs[0])).toMatchObject({
      name: "MultipleWithdrawalsSettled",
      args: { bonder, rootHash: merkleRoot(two) },
    });
    expect(await read("getCredit", [bonder])).toBe(credit + 3n * AMOUNT);
    expect(await read("getBondedWithdrawalAmount", [bonder, alone])).toBe(0n);
  });
});
