import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { getBonder, getContract } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import { messenger } from "../../../../devnet/deploy/accounts.js";
import { createTestChains, expectTransferId, parseLog } from "./contract-chains.js";

const slugs = ["ethereum", "polygon", "arbitrum", "optimism"] as const;
type Slug = (typeof slugs)[number];

const sender = "0x00000000000000000000000000000000000aA001";
const recipient = utils.getAddress("0x00000000000000000000000000000000000bb0f1");
const deadline = 4_000_000_000;
const oneEther = 10n ** 18n;

const l2Abi = sdk.L2_Bridge__factory.createInterface();
const l1Abi = sdk.L1_ERC20_Bridge__factory.createInterface();
const wrapperAbi = sdk.L2_AmmWrapper__factory.createInterface();
const localAbi = new utils.Interface(["function setTransferRoot(bytes32 rootHash, uint256 totalAmount)"]);

const chains = createTestChains(slugs);

beforeAll(() => chains.start());

afterAll(() => chains.stop());

describe("sending from an L2", () => {
  test("sends the native coin with the transaction and increments nonce and index", async () => {
    const value = 2n * oneEther;
    const send = wrapperAbi.encodeFunctionData("swapAndSend", [
      42161,
      recipient,
      value,
      oneEther / 100n,
      1,
      deadline,
      2,
      3,
    ]);
    const wrapper = getContract("ETH", "optimism", "l2AmmWrapper");
    for (const count of [0, 1]) {
      const receipt = await chains.send("optimism", { from: sender, to: wrapper, data: send, value });
      const { index, amountOutMin, deadline: sentDeadline } = expectTransferId(receipt, "optimism", count);
      expect([index, amountOutMin, sentDeadline].map(Number)).toEqual([count, 2, 3]);
    }
    await expect(chains.estimate("optimism", sender, wrapper, send, value - 1n)).rejects.toThrow(
      /value is not the amount/,
    );
  });

  test("sends MATIC as polygon's native coin", async () => {
    const send = wrapperAbi.encodeFunctionData("swapAndSend", [
      1,
      recipient,
      oneEther,
      oneEther / 10n,
      0,
      deadline,
      0,
      0,
    ]);
    const to = getContract("MATIC", "polygon", "l2AmmWrapper");
    const receipt = await chains.send("polygon", { from: sender, to, data: send, value: oneEther });
    expectTransferId(receipt, "polygon", 0);
  });

  test("rejects low fees, unsupported chains, and amounts that are zero or exceed the balance", async () => {
    const bridge = getContract("HOP", "optimism", "l2Bridge");
    await fundAccount(chains.bySlug, "optimism", "HOP", sender, 100_000n);
    const estimate = (chainId: number, amount: number, fee: number): Promise<unknown> =>
      chains.estimate(
        "optimism",
        sender,
        bridge,
        l2Abi.encodeFunctionData("send", [chainId, recipient, amount, fee, 0, 0]),
      );
    await expect(estimate(42161, 100_000, 20)).resolves.toBeDefined();
    await expect(estimate(42161, 100_000, 19)).rejects.toThrow(/fee too low/);
    await expect(estimate(42161, 100_000, 100_001)).rejects.toThrow(/fee above amount/);
    await expect(estimate(42161, 100_001, 100_001)).rejects.toThrow(/exceeds balance/);
    await expect(estimate(10, 100_000, 20)).rejects.toThrow(/chain not supported/);
    await expect(estimate(42161, 0, 0)).rejects.toThrow(/nothing to send/);
    const eth = getContract("ETH", "polygon", "l2Bridge");
    const below = l2Abi.encodeFunctionData("send", [10, recipient, 10n ** 15n, 249_999_999_999_999n, 0, 0]);
    await expect(chains.estimate("polygon", sender, eth, below)).rejects.toThrow(/fee too low/);
  });
});

describe("receiving on an L2", () => {
  const bonder = getBonder("USDT", "polygon", "arbitrum");
  const bridge = getContract("USDT", "arbitrum", "l2Bridge");
  const bondData = (nonce: string, amountOutMin: number): string =>
    l2Abi.encodeFunctionData("bondWithdrawalAndDistribute", [
      recipient,
      1_000_000,
      nonce,
      1_000,
      amountOutMin,
      deadline,
    ]);

  test("a transfer can be bonded once, only by a bonder with enough credit", async () => {
    const data = bondData(utils.id("once"), 0);
    const debit = await chains.read("arbitrum", bridge, l2Abi, "getRawDebit", [bonder]);
    await expect(chains.estimate("arbitrum", sender, bridge, data)).rejects.toThrow(/not a bonder/);
    const receipt = await chains.send("arbitrum", { from: bonder, to: bridge, data });
    const transferId = receipt.logs[0]?.topics[1];
    expect(await chains.read("arbitrum", bridge, l2Abi, "isTransferIdSpent", [transferId])).toBe(1n);
    expect(await chains.read("arbitrum", bridge, l2Abi, "getBondedWithdrawalAmount", [bonder, transferId])).toBe(
      1_000_000n,
    );
    expect(await chains.read("arbitrum", bridge, l2Abi, "getDebitAndAdditionalDebit", [bonder])).toBe(
      debit + 1_000_000n,
    );
    await expect(chains.estimate("arbitrum", bonder, bridge, data)).rejects.toThrow(/already paid out/);

    const credit = await chains.read("arbitrum", bridge, l2Abi, "getCredit", [bonder]);
    const overCredit = l2Abi.encodeFunctionData("bondWithdrawal", [recipient, credit, utils.id("credit"), 0]);
    await expect(chains.estimate("arbitrum", bonder, bridge, overCredit)).rejects.toThrow(/credit too low/);
  });

  test("the recipient gets hTokens if the swap fails", async () => {
    const hToken = getContract("USDT", "arbitrum", "l2HopBridgeToken");
    const before = await chains.tokens("arbitrum", hToken, recipient);
    await chains.send("arbitrum", { from: bonder, to: bridge, data: bondData(utils.id("fallback"), 2_000_000) });
    expect(await chains.tokens("arbitrum", hToken, recipient)).toBe(before + 999_000n);
  });

  test("only the messenger can distribute deposits and set roots", async () => {
    const deposit = l2Abi.encodeFunctionData("distribute", [recipient, 10, 0, 0, sender, 0]);
    await expect(chains.estimate("arbitrum", sender, bridge, deposit)).rejects.toThrow(/not the messenger/);
    const root = localAbi.encodeFunctionData("setTransferRoot", [utils.id("root"), 10]);
    await expect(chains.estimate("arbitrum", sender, bridge, root)).rejects.toThrow(/not the messenger/);
  });
});

describe("settled transfers", () => {
  const bridge = getContract("ETH", "ethereum", "l1Bridge");
  const amount = oneEther;
  const transferId = (nonce: string): string =>
    utils.keccak256(
      utils.defaultAbiCoder.encode(
        ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"],
        [1, recipient, amount, nonce, 5, 7, deadline],
      ),
    );
  const withdraw = (
    nonce: string,
    root: string,
    total: bigint,
    index: number,
    siblings: string[],
    leaves: number,
  ): string =>
    l1Abi.encodeFunctionData("withdraw", [
      recipient,
      amount,
      nonce,
      5,
      7,
      deadline,
      root,
      total,
      index,
      siblings,
      leaves,
    ]);

  test("anyone can withdraw the whole amount with a proof against a known root", async () => {
    const [first, second] = [utils.id("first"), utils.id("second")];
    const root = utils.keccak256(utils.hexConcat([transferId(first), transferId(second)]));
    const data = withdraw(second, root, 2n * amount, 1, [transferId(first)], 2);
    await expect(chains.estimate("ethereum", sender, bridge, data)).rejects.toThrow(/root not known/);
    const setRoot = localAbi.encodeFunctionData("setTransferRoot", [root, 2n * amount]);
    await chains.send("ethereum", { from: messenger, to: bridge, data: setRoot });
    const wrongSide = withdraw(second, root, 2n * amount, 0, [transferId(first)], 2);
    await expect(chains.estimate("ethereum", sender, bridge, wrongSide)).rejects.toThrow(/not in this root/);

    const before = await readBalance("ethereum", recipient);
    const { logs } = await chains.send("ethereum", { from: sender, to: bridge, data });
    const event = parseLog(l1Abi, logs[0]);
    expect(event.name).toBe("Withdrew");
    expect([...event.args].map(String)).toEqual([transferId(second), recipient, `${amount}`, second]);
    expect(await readBalance("ethereum", recipient)).toBe(before + amount);
    expect(await chains.read("ethereum", bridge, l1Abi, "isTransferIdSpent", [transferId(second)])).toBe(1n);
    await expect(chains.estimate("ethereum", sender, bridge, data)).rejects.toThrow(/already paid out/);
  });
});

describe("sending from L1", () => {
  const send = (chainId: number, amount: bigint, relayerFee = 0n): string =>
    l1Abi.encodeFunctionData("sendToL2", [chainId, recipient, amount, 0, deadline, sender, relayerFee]);

  test("transfers an ERC-20 token to the bridge", async () => {
    const [token, bridge] = [
      getContract("DAI", "ethereum", "l1CanonicalToken"),
      getContract("DAI", "ethereum", "l1Bridge"),
    ];
    await fundAccount(chains.bySlug, "ethereum", "DAI", sender, oneEther);
    await chains.approve("ethereum", sender, token, bridge);
    const balance = await chains.tokens("ethereum", token, bridge);
    await chains.send("ethereum", { from: sender, to: bridge, data: send(10, oneEther) });
    expect(await chains.tokens("ethereum", token, bridge)).toBe(balance + oneEther);
    await expect(chains.estimate("ethereum", sender, bridge, send(10, 1n), 1n)).rejects.toThrow(/wrong value/);
    await expect(chains.estimate("ethereum", sender, bridge, send(8453, 1n))).rejects.toThrow(/chain not supported/);
  });

  test("requires the native coin with the call, and rejects paused chains", async () => {
    const bridge = getContract("ETH", "ethereum", "l1Bridge");
    await expect(chains.estimate("ethereum", sender, bridge, send(10, 5n), 5n)).resolves.toBeDefined();
    await expect(chains.estimate("ethereum", sender, bridge, send(10, 5n), 4n)).rejects.toThrow(/wrong value/);
    await expect(chains.estimate("ethereum", sender, bridge, send(10, 5n, 6n), 5n)).rejects.toThrow(
      /relayer fee above/,
    );
    const pause = l1Abi.encodeFunctionData("setChainIdDepositsPaused", [10, true]);
    await expect(chains.estimate("ethereum", sender, bridge, pause)).rejects.toThrow(/not the messenger/);
    await chains.send("ethereum", { from: messenger, to: bridge, data: pause });
    await expect(chains.estimate("ethereum", sender, bridge, send(10, 5n), 5n)).rejects.toThrow(/paused/);
  });
});

async function readBalance(slug: Slug, account: string): Promise<bigint> {
  return BigInt((await chains.on(slug).rpc("eth_getBalance", [account, "latest"])) as string);
}
