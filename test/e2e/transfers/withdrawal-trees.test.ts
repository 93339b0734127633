import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  connectChains,
  getBonder,
  getContract,
  getLocalChain,
  type LocalChains,
} from "../../../devnet/chain/local-chains.js";
import { callContract, sendTransaction } from "../../../devnet/chain/transactions.js";
import { messenger } from "../../../devnet/deploy/accounts.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import {
  type CommitRoute,
  commitTransfers,
  readTransferRoots,
  setTransferRoot,
} from "../../../devnet/transfer/deliver-transfer.js";
import { sendBatch } from "../../../devnet/transfer/send-batch.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { type WithdrawableAnswer, withdrawByAnswer } from "../../support/service/local-transfers.js";

// Trees of every size, withdrawn from with nothing but the answers. Uses its own local network, because it sends transactions.

const bridgeAbi = L2Bridge.createInterface();
const erc20Abi = new utils.Interface(["function balanceOf(address) view returns (uint256)"]);
const sender = "0x00000000000000000000000000000000000a0001";

let network: LocalNetwork;
let chains: LocalChains;
let gateway: TestGateway;

beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
  gateway = await startGateway(network.environment);
});
afterAll(async () => {
  await gateway?.stop();
  await network?.stop();
});

type Withdrawal = WithdrawableAnswer & { readonly state: string };

async function read(transferId: string): Promise<Withdrawal> {
  const { status, body } = await gateway.get(`/v1/withdrawal?transferId=${transferId}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body as Withdrawal;
}

/** Waits for a state: answers are kept for about a block. */
async function readState(transferId: string, state: string): Promise<Withdrawal> {
  await expect.poll(async () => (await read(transferId)).state).toBe(state);
  return read(transferId);
}

/** Sends transfers in one transaction, each with an amount and a recipient of its own. Returns their ids. */
async function send(route: CommitRoute, count: number, label: string): Promise<readonly string[]> {
  const { token, source, destination } = route;
  const sends = Array.from({ length: count }, (_, index) => {
    const recipient = utils.hexDataSlice(utils.id(`${token} ${label} ${index}`), 12);
    // A deadline of more than 64 bits is part of the id like any other.
    return { token, destination, recipient, amount: 10_000_000n + BigInt(index), deadline: 2n ** 200n };
  });
  const { transfers } = await sendBatch(chains, source, sends, { from: sender });
  return transfers.map(({ transferId }) => transferId);
}

async function readBalance({ token, destination }: CommitRoute, account: string): Promise<bigint> {
  const chain = getLocalChain(chains, destination);
  if (destination === "ethereum") return BigInt((await chain.rpc("eth_getBalance", [account, "latest"])) as string);
  const hToken = getContract(token, destination, "l2HopBridgeToken");
  return BigInt(await callContract(chain, hToken, erc20Abi.encodeFunctionData("balanceOf", [account])));
}

async function expectWithdrawable(route: CommitRoute, transferId: string, place: object): Promise<void> {
  const withdrawal = await readState(transferId, "WITHDRAWABLE");
  expect(withdrawal.merkleProof).toMatchObject(place);
  await withdrawByAnswer(chains, withdrawal);
  expect(await readBalance(route, withdrawal.recipientAddress)).toBe(BigInt(withdrawal.amount));
}

describe.each<CommitRoute>([
  { token: "ETH", source: "base", destination: "ethereum" },
  { token: "USDT", source: "arbitrum", destination: "gnosis" },
])("$token from $source to $destination", (route) => {
  // One after the other: the first is the first commit of the bridge to this destination.
  test.each([1, 2, 3, 64, 1_024])("is withdrawn from a tree of %d", async (count) => {
    const ids = await send(route, count, `tree of ${count}`);
    const root = await commitTransfers(chains, route, getBonder(route.token, route.destination, route.source));
    expect(root.transferIds).toEqual(ids);
    await setTransferRoot(chains, route, root);
    for (const index of new Set([0, count >> 1, count - 1])) {
      await expectWithdrawable(route, ids[index] ?? "", { transferIdTreeIndex: index, totalLeaves: count });
    }
  });

  test("is withdrawn after two commits in one block, by sends that found the list full", async () => {
    const bridge = getContract(route.token, route.source, "l2Bridge");
    const setMaximum = (maximum: number) =>
      sendTransaction(getLocalChain(chains, route.source), {
        from: messenger,
        to: bridge,
        data: bridgeAbi.encodeFunctionData("setMaxPendingTransfers", [maximum]),
      });
    await setMaximum(2);
    const ids = await send(route, 5, "full lists");
    await setMaximum(1_024);
    const roots = (await readTransferRoots(chains, route)).slice(-2);
    expect(roots.map(({ transferIds }) => transferIds)).toEqual([ids.slice(0, 2), ids.slice(2, 4)]);
    expect(roots[0]?.blockNumber).toBe(roots[1]?.blockNumber);
    for (const root of roots) await setTransferRoot(chains, route, root);
    for (const [index, transferId] of ids.slice(0, 4).entries()) {
      await expectWithdrawable(route, transferId, { transferIdTreeIndex: index % 2, totalLeaves: 2 });
    }
    expect((await read(ids[4] ?? "")).state).toBe("WAITING_FOR_COMMIT");
  });
});

test("the seeded transfers have every state", async () => {
  const real = network.transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
  const states: Record<string, string> = {};
  for (const { name, transferId, transactionHash } of real) {
    const { body } = await gateway.get(`/v1/withdrawal?transferId=${transferId}&transferHash=${transactionHash}`);
    states[name] = (body as Withdrawal).state;
  }
  expect(states).toEqual(Object.fromEntries(real.map((seeded) => [seeded.name, seeded.expectedWithdrawalState])));
});
