import {
  L2_Bridge__factory as L2Bridge,
  CCTPMessageTransmitter__factory as MessageTransmitter,
} from "@hop-protocol/sdk";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { getBonder, getContract, getLocalChain } from "../../../devnet/chain/local-chains.js";
import { fundAccount, getTokenAddress } from "../../../devnet/chain/tokens.js";
import { callContract, sendTransaction } from "../../../devnet/chain/transactions.js";
import { commitTransfers, deliverTransfer, setTransferRoot } from "../../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers, type SentTransfer } from "../../../devnet/transfer/sent-transfer.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import { startGatewayForTest, useGateway } from "../../support/service/in-process-gateway.js";
import { type WithdrawableAnswer, withdrawByAnswer } from "../../support/service/local-transfers.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { type RpcProxy, startRpcProxy, toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";

// Withdraws with nothing but the answers. Uses its own local network, because it sends transactions.

const bridgeAbi = new utils.Interface(L2Bridge.abi as never);
const transmitterAbi = new utils.Interface(MessageTransmitter.abi as never);
const erc20Abi = new utils.Interface(["function balanceOf(address) view returns (uint256)"]);
const sender = "0x00000000000000000000000000000000000a0001";
const stranger = "0x00000000000000000000000000000000000a0002";

const { network, chains } = useOwnNetwork();
/** A second endpoint of each chain. */
const proxies = useChainProxies(() => network.chains);
const getEnvironment = () => ({ ...network.environment, ...toRpcEnvironment(proxies), EXPLORER_API_URL: "off" });
const gateway = useGateway(getEnvironment);

interface Withdrawal extends WithdrawableAnswer {
  readonly state: string;
  readonly availableAt?: number;
  readonly receivedTransactionHash: string;
  readonly cctp?: {
    readonly messageTransmitterAddress: string;
    readonly message: string;
    readonly attestation?: string;
  };
}

interface Sent {
  readonly hash: string;
  readonly transfer: SentTransfer;
}

async function send(token: string, destination: string, recipient: string, amount: bigint): Promise<Sent> {
  await fundAccount(chains, "optimism", token, sender, amount);
  const { transactionHash, logs } = await sendTransfer(chains, {
    ...{ token, source: "optimism", destination, from: sender, recipient, amount },
    ...{ bonderFee: amount / 10n, amountOutMin: 0n, deadline: 4_000_000_000 },
    ...{ destinationAmountOutMin: 0n, destinationDeadline: 0 },
  });
  const [transfer] = parseSentTransfers("optimism", logs);
  if (transfer === undefined) throw new Error("the transaction sent no transfer");
  return { hash: transactionHash, transfer };
}

async function read(
  { hash }: Sent,
  from = gateway,
): Promise<{ readonly body: Withdrawal; readonly warning: string | null }> {
  const { status, body, headers } = await from.get(`/v1/withdrawal?transferHash=${hash}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return { body: body as Withdrawal, warning: headers.get("warning") };
}

/** Waits for a state: answers are kept for about a block. */
async function readState(sent: Sent, state: string): Promise<Withdrawal> {
  await expect.poll(async () => (await read(sent)).body.state, { timeout: 60_000 }).toBe(state);
  return (await read(sent)).body;
}

async function readBalance(slug: string, token: string, account: string): Promise<bigint> {
  const chain = getLocalChain(chains, slug);
  const result = await callContract(chain, token, erc20Abi.encodeFunctionData("balanceOf", [account]));
  return BigInt(result);
}

describe("over Hop's bridges", () => {
  test("a transfer between L2s is withdrawn by the answer alone, from its sending on", async () => {
    const recipient = "0x00000000000000000000000000000000000b0001";
    const sends: Sent[] = [];
    for (const amount of [21_000_000n, 22_000_000n, 23_000_000n])
      sends.push(await send("USDT", "gnosis", recipient, amount));
    const [first, second] = sends as [Sent, Sent];
    const waiting = await readState(second, "WAITING_FOR_COMMIT");
    expect(waiting.merkleProof).toBeUndefined();
    // Nobody has committed this list yet.
    expect(Math.abs((waiting.availableAt ?? 0) - Date.now() / 1000)).toBeLessThan(600);

    const root = await commitTransfers(chains, first.transfer, getBonder("USDT", "gnosis", "optimism"));
    const onItsWay = await readState(second, "WAITING_FOR_ROOT");
    expect(onItsWay.merkleProof).toMatchObject({ transferIdTreeIndex: 1, totalLeaves: 3, rootHash: root.rootHash });
    expect(onItsWay.availableAt).toBeUndefined();

    await setTransferRoot(chains, first.transfer, root);
    const hToken = getContract("USDT", "gnosis", "l2HopBridgeToken");
    let balance = 0n;
    for (const sent of sends) {
      const withdrawal = await readState(sent, "WITHDRAWABLE");
      await withdrawByAnswer(chains, withdrawal);
      balance += BigInt(withdrawal.amount);
      expect(await readBalance("gnosis", hToken, recipient)).toBe(balance);
      expect((await readState(sent, "RECEIVED")).merkleProof).toBeUndefined();
    }
  });

  test("a transfer to ethereum pays ETH, unless its recipient rejects it", async () => {
    const ethereum = getLocalChain(chains, "ethereum");
    const recipient = "0x00000000000000000000000000000000000b0002";
    const sent = await send("ETH", "ethereum", recipient, 10n ** 18n);
    const root = await commitTransfers(chains, sent.transfer, getBonder("ETH", "ethereum", "optimism"));
    await setTransferRoot(chains, sent.transfer, root);
    // It reverts whatever it is called with.
    await ethereum.rpc("anvil_setCode", [recipient, "0x60006000fd"]);
    const blocked = await readState(sent, "BLOCKED");
    expect((await read(sent)).warning).toContain("the bridge on ethereum refuses the withdrawal: L1_ETH_BRG: ETH");

    await ethereum.rpc("anvil_setCode", [recipient, "0x"]);
    const withdrawal = await readState(sent, "WITHDRAWABLE");
    expect(withdrawal.merkleProof).toEqual(blocked.merkleProof);
    await withdrawByAnswer(chains, withdrawal);
    expect(BigInt((await ethereum.rpc("eth_getBalance", [recipient, "latest"])) as string)).toBe(
      BigInt(withdrawal.amount),
    );
  });

  test("a bond ends it, and a commit that is reorganized changes it", async () => {
    const sent = await send("USDT", "arbitrum", sender, 30_000_000n);
    await readState(sent, "WAITING_FOR_COMMIT");
    const optimism = getLocalChain(chains, "optimism");
    const snapshot = await optimism.rpc("evm_snapshot", []);
    await commitTransfers(chains, sent.transfer, getBonder("USDT", "arbitrum", "optimism"));
    await readState(sent, "WAITING_FOR_ROOT");
    await optimism.rpc("evm_revert", [snapshot]);
    await readState(sent, "WAITING_FOR_COMMIT");
    const receipt = await deliverTransfer(chains, sent.transfer);
    const { receivedTransactionHash } = await readState(sent, "RECEIVED");
    expect(["", receipt?.transactionHash]).toContain(receivedTransactionHash);
  });
});

test("an endpoint that leaves out the commit is not believed: alone nothing is told, of three it is outvoted", async () => {
  const committed = bridgeAbi.getEventTopic("TransfersCommitted");
  const { url = "" } = network.chains.optimism ?? {};
  const endpoints = await Promise.all(Array.from({ length: 3 }, () => startRpcProxy(url)));
  const [liar] = endpoints.map(closeAfterTest) as [RpcProxy];
  liar.behaviour.override = ({ method }, result) =>
    method === "eth_getLogs" && Array.isArray(result)
      ? { result: result.filter(({ topics }) => topics[0] !== committed) }
      : undefined;
  const sent = await send("USDT", "arbitrum", sender, 70_000_000n);
  await commitTransfers(chains, sent.transfer, getBonder("USDT", "arbitrum", "optimism"));
  const path = `/v1/withdrawal?transferHash=${sent.hash}`;
  const environment = getEnvironment();
  const alone = await startGatewayForTest({ ...environment, RPC_URL_OPTIMISM: liar.url });
  const twice = Object.fromEntries(
    Object.entries(environment).map(([name, value]) =>
      /^RPC_URL_/.test(name) ? [name, `${value},${network.environment[name]}`] : [name, value],
    ),
  );
  const voting = await startGatewayForTest({
    ...{ ...twice, RPC_QUORUM: "2", RPC_URL_OPTIMISM: endpoints.map((proxy) => proxy.url).join(",") },
  });
  expect(await alone.get(path)).toMatchObject({
    status: 503,
    body: { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("(check pending)") },
  });
  const metrics = await (await fetch(alone.metricsUrl)).text();
  expect(metrics).toContain('hop_gateway_withdrawal_checks_failed_total{check="pending"} 1');
  expect(await voting.get(path)).toMatchObject({ status: 200, body: { state: "WAITING_FOR_ROOT" } });
});

describe("over CCTP", () => {
  test("a transfer is redeemed by the answer alone", async () => {
    const recipient = "0x00000000000000000000000000000000000b0003";
    const sent = await send("USDC", "arbitrum", recipient, 40_000_000n);
    const { cctp } = await readState(sent, "REDEEMABLE");
    if (cctp === undefined) throw new Error("no message");
    await sendTransaction(getLocalChain(chains, "arbitrum"), {
      from: stranger,
      to: cctp.messageTransmitterAddress,
      data: transmitterAbi.encodeFunctionData("receiveMessage", [cctp.message, cctp.attestation]),
    });
    expect(await readBalance("arbitrum", getTokenAddress("USDC", "arbitrum"), recipient)).toBe(36_000_000n);
    expect((await readState(sent, "RECEIVED")).cctp).toBeUndefined();
  });

  test("without the attestation source it waits, and a header says why", async () => {
    const sent = await send("USDC", "base", sender, 50_000_000n);
    const plain = await startGatewayForTest({ ...getEnvironment(), ATTESTATION_API_URL: "off" });
    const { body, warning } = await read(sent, plain);
    expect(body).toMatchObject({ state: "WAITING_FOR_ATTESTATION", cctp: { message: expect.stringMatching(/^0x/) } });
    expect(body.cctp).not.toHaveProperty("attestation");
    expect(warning).toContain("the CCTP attestation source is switched off");
    const lost = await startGatewayForTest({ ...getEnvironment(), ATTESTATION_API_URL: "http://127.0.0.1:9" });
    expect(await lost.get(`/v1/withdrawal?transferHash=${sent.hash}`)).toMatchObject({
      status: 503,
      body: { reason: "UPSTREAM_UNAVAILABLE" },
    });
  });
});
