import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { getChainId, getContract } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import type { EventLog, TransactionReceipt } from "../../../../devnet/chain/transactions.js";
import { feeCollector } from "../../../../devnet/deploy/accounts.js";
import { signAttestation } from "../../../../devnet/deploy/attestation.js";
import { createTestChains, parseLog } from "./contract-chains.js";

const slugs = ["ethereum", "optimism", "base"] as const;
type Slug = (typeof slugs)[number];

const sender = "0x00000000000000000000000000000000000aA001";
const recipient = utils.getAddress("0x00000000000000000000000000000000000bb0f1");
const relayer = "0x00000000000000000000000000000000000cc001";

const bridgeAbi = sdk.L2_HopCCTPImplementation__factory.createInterface();
const transmitterAbi = sdk.CCTPMessageTransmitter__factory.createInterface();

const chains = createTestChains(slugs);

beforeAll(async () => {
  await chains.start();
  for (const slug of slugs) {
    await fundAccount(chains.bySlug, slug, "USDC", sender, 10_000_000_000_000n);
    await chains.approve(slug, sender, usdcOn(slug), bridgeOn(slug));
  }
});

afterAll(() => chains.stop());

test("sends USDC from optimism with a fee and mints it on ethereum with an attestation", async () => {
  const [amount, fee] = [25_000_000n, 100_000n];
  const feesBefore = await chains.tokens("optimism", usdcOn("optimism"), feeCollector);
  const sent = await chains.send("optimism", {
    from: sender,
    to: bridgeOn("optimism"),
    data: send(1, amount, fee),
  });
  const { cctpNonce } = expectSentEvent(sent, [getChainId("ethereum"), recipient, amount, fee]);
  expect(await chains.tokens("optimism", usdcOn("optimism"), feeCollector)).toBe(feesBefore + fee);

  const message = parseMessage(sent);
  const transmitter = transmitterOn("ethereum");
  const data = receive(message, signAttestation(utils.keccak256(message)));
  const before = await chains.tokens("ethereum", usdcOn("ethereum"), recipient);
  const received = await chains.send("ethereum", { from: relayer, to: transmitter, data });
  expect(await chains.tokens("ethereum", usdcOn("ethereum"), recipient)).toBe(before + amount - fee);
  const event = parseLog(transmitterAbi, received.logs.at(-1));
  expect(event.name).toBe("MessageReceived");
  expect([event.args.caller, event.args.sourceDomain, String(event.args.nonce)]).toEqual([
    utils.getAddress(relayer),
    2,
    String(cctpNonce),
  ]);

  const key = utils.solidityKeccak256(["uint32", "uint64"], [2, cctpNonce]);
  expect(await chains.read("ethereum", transmitter, transmitterAbi, "usedNonces", [key])).toBe(1n);
  await expect(chains.estimate("ethereum", relayer, transmitter, data)).rejects.toThrow(/nonce already used/);
});

test("sends USDC from ethereum without a fee and with increasing nonces", async () => {
  const nonces = [];
  for (const amount of [5_000_000n, 6_000_000n]) {
    const sent = await chains.send("ethereum", {
      from: sender,
      to: bridgeOn("ethereum"),
      data: send(8453, amount, 0n),
    });
    nonces.push(Number(expectSentEvent(sent, [getChainId("base"), recipient, amount, 0n]).cctpNonce));
    const message = parseMessage(sent);
    const data = receive(message, signAttestation(utils.keccak256(message)));
    const before = await chains.tokens("base", usdcOn("base"), recipient);
    await chains.send("base", { from: relayer, to: transmitterOn("base"), data });
    expect(await chains.tokens("base", usdcOn("base"), recipient)).toBe(before + amount);
  }
  expect(nonces[1]).toBe((nonces[0] ?? 0) + 1);
});

test("swaps bridged USDC on Uniswap, then sends it", async () => {
  const [amount, fee] = [1_000_000_000n, 100_000n];
  const [bridged, native] = [getContract("USDC.e", "optimism", "l2CanonicalToken"), usdcOn("optimism")];
  await fundAccount(chains.bySlug, "optimism", "USDC.e", sender, amount);
  await chains.approve("optimism", sender, bridged, bridgeOn("optimism"));
  const swapAndSend = (path: string, amountOutMinimum: bigint): string =>
    bridgeAbi.encodeFunctionData("swapAndSend", [
      1,
      recipient,
      amount,
      fee,
      { path, recipient: bridgeOn("optimism"), amountIn: amount, amountOutMinimum },
    ]);
  const path = utils.solidityPack(["address", "uint24", "address"], [bridged, 100, native]);
  const reversedPath = utils.solidityPack(["address", "uint24", "address"], [native, 100, bridged]);
  const estimate = (data: string): Promise<unknown> => chains.estimate("optimism", sender, bridgeOn("optimism"), data);
  await expect(estimate(swapAndSend(path, amount))).rejects.toThrow(/below the minimum/);
  await expect(estimate(swapAndSend(reversedPath, 0n))).rejects.toThrow(/must start with bridged/);

  const sent = await chains.send("optimism", {
    from: sender,
    to: bridgeOn("optimism"),
    data: swapAndSend(path, 1n),
  });
  const { amount: swapped } = expectSentEvent(sent, [getChainId("ethereum"), recipient]);
  expect(Number(swapped) / Number(amount)).toBeCloseTo(1, 2);
  expect(await chains.tokens("optimism", bridged, sender)).toBe(0n);
});

test("rejects low fees, unsupported chains and amounts above the burn limit", async () => {
  const estimate = (chainId: number, amount: bigint, fee: bigint): Promise<unknown> =>
    chains.estimate("optimism", sender, bridgeOn("optimism"), send(chainId, amount, fee));
  await expect(estimate(1, 1_000_000n, 100_000n)).resolves.toBeDefined();
  await expect(estimate(1, 1_000_000n, 99_999n)).rejects.toThrow(/fee too low/);
  await expect(estimate(1, 100_000n, 100_000n)).rejects.toThrow(/not above the fee/);
  await expect(estimate(100, 1_000_000n, 100_000n)).rejects.toThrow(/chain not supported/);
  await expect(estimate(10, 1_000_000n, 100_000n)).rejects.toThrow(/chain not supported/);
  await expect(estimate(1, 1_000_000_100_001n, 100_000n)).rejects.toThrow(/above the burn limit/);
  await expect(estimate(1, 1_000_000_100_000n, 100_000n)).resolves.toBeDefined();
});

test("accepts a message only on its destination, from a known sender, and with all signatures", async () => {
  const sent = await chains.send("optimism", {
    from: sender,
    to: bridgeOn("optimism"),
    data: send(1, 500_000n, 100_000n),
  });
  const message = parseMessage(sent);
  const attestation = signAttestation(utils.keccak256(message));
  const estimate = (signed: string, slug: Slug = "ethereum", bytes = message): Promise<unknown> =>
    chains.estimate(slug, relayer, transmitterOn(slug), receive(bytes, signed));
  await expect(estimate(attestation)).resolves.toBeDefined();
  await expect(estimate(attestation, "base")).rejects.toThrow(/another domain/);
  await expect(estimate(`0x${"ab".repeat(130)}`)).rejects.toThrow(/not signed/);
  await expect(estimate(utils.hexDataSlice(attestation, 0, 65))).rejects.toThrow(/wrong attestation length/);
  await expect(estimate("0x")).rejects.toThrow(/wrong attestation length/);
  const forged = `${message.slice(0, -64)}${"00".repeat(31)}01`;
  await expect(estimate(attestation, "ethereum", forged)).rejects.toThrow(/not signed/);

  const unknownSenderMessage = utils.hexConcat([
    utils.hexDataSlice(message, 0, 20),
    utils.hexZeroPad(sender, 32),
    utils.hexDataSlice(message, 52),
  ]);
  const signed = signAttestation(utils.keccak256(unknownSenderMessage));
  await expect(estimate(signed, "ethereum", unknownSenderMessage)).rejects.toThrow(/unknown sender/);
});

function send(chainId: number, amount: bigint, fee: bigint): string {
  return bridgeAbi.encodeFunctionData("send", [chainId, recipient, amount, fee]);
}

function receive(message: string, attestation: string): string {
  return transmitterAbi.encodeFunctionData("receiveMessage", [message, attestation]);
}

/** Returns the CCTPTransferSent event, the last log of a receipt. Its values after the nonce must start with `expected`. */
function expectSentEvent(receipt: TransactionReceipt, expected: readonly unknown[]): utils.Result {
  const { name, args } = parseLog(bridgeAbi, receipt.logs.at(-1));
  expect(name).toBe("CCTPTransferSent");
  expect(args.slice(1, 1 + expected.length).map(String)).toEqual(expected.map(String));
  return args;
}

function parseMessage(receipt: TransactionReceipt): string {
  const topic = transmitterAbi.getEventTopic("MessageSent");
  const log = receipt.logs.find(({ topics }) => topics[0] === topic) as EventLog;
  return transmitterAbi.decodeEventLog("MessageSent", log.data).message as string;
}

function usdcOn(slug: Slug): string {
  return getContract("USDC", slug, slug === "ethereum" ? "l1CanonicalToken" : "l2CanonicalToken");
}

function bridgeOn(slug: Slug): string {
  return getContract("USDC", slug, slug === "ethereum" ? "cctpL1Bridge" : "cctpL2Bridge");
}

function transmitterOn(slug: Slug): string {
  return getContract("USDC", slug, "cctpMessageTransmitter");
}
