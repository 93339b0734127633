import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import {
  getBonder,
  getChainId,
  getContract,
  getLocalChain,
  type LocalChain,
} from "../../../devnet/chain/local-chains.js";
import { mintTokens } from "../../../devnet/chain/tokens.js";
import { callContract, sendTransaction, type TransactionRequest } from "../../../devnet/chain/transactions.js";
import { messenger } from "../../../devnet/deploy/accounts.js";
import {
  type CommitRoute,
  commitTransfers,
  readTransferRoots,
  setTransferRoot,
} from "../../../devnet/transfer/deliver-transfer.js";
import { sendBatch } from "../../../devnet/transfer/send-batch.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { type WithdrawableAnswer, withdrawByAnswer } from "../../support/service/local-transfers.js";
import { useOwnNetwork } from "../../support/service/own-network.js";

// Trees of every size, withdrawn from with nothing but the answers. Uses its own local network, because it sends transactions.

const bridgeAbi = L2Bridge.createInterface();
const erc20Abi = new utils.Interface(["function balanceOf(address) view returns (uint256)"]);
const sender = "0x00000000000000000000000000000000000a0001";

const { network, chains } = useOwnNetwork();
const gateway = useGateway(() => network.environment);

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

/** Mines one block with calls of one account, in their order. */
async function sendInOneBlock(
  chain: LocalChain,
  { from, to }: Pick<TransactionRequest, "from" | "to">,
  calls: readonly string[],
): Promise<void> {
  const pending: Promise<unknown>[] = [];
  await chain.rpc("evm_setAutomine", [false]);
  try {
    for (const data of calls) {
      pending.push(sendTransaction(chain, { from, to, data }));
      // The next one is sent when the chain has this one, and gets the next nonce.
      await expect
        .poll(async () => Number(((await chain.rpc("txpool_status")) as { pending: string }).pending))
        .toBe(pending.length);
    }
    await Promise.all([chain.rpc("anvil_mine", ["0x1"]), ...pending]);
  } finally {
    await chain.rpc("evm_setAutomine", [true]);
  }
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

test("is withdrawn after commits to two destinations in one block, two of them to the same one", async () => {
  const route = { token: "USDT", source: "arbitrum", destination: "polygon" };
  const other = { ...route, destination: "optimism" };
  const chain = getLocalChain(chains, route.source);
  const bridge = getContract(route.token, route.source, "l2Bridge");
  const bonder = getBonder(route.token, route.destination, route.source);
  const ids = await send(route, 2, "before the block");
  const otherIds = await send(other, 3, "to the other destination");
  const amount = 30_000_000n;
  await mintTokens(chain, getContract(route.token, route.source, "l2HopBridgeToken"), bonder, amount);
  const encodeCommit = ({ destination }: CommitRoute) =>
    bridgeAbi.encodeFunctionData("commitTransfers", [getChainId(destination)]);
  const recipient = utils.hexDataSlice(utils.id("within the block"), 12);
  const sendArguments = [getChainId(route.destination), recipient, amount, amount / 50n, 0, 0] as const;
  await sendInOneBlock(chain, { from: bonder, to: bridge }, [
    encodeCommit(route),
    bridgeAbi.encodeFunctionData("send", [...sendArguments]),
    encodeCommit(other),
    encodeCommit(route),
  ]);

  const [first, second] = (await readTransferRoots(chains, route)).slice(-2);
  const otherRoot = (await readTransferRoots(chains, other)).at(-1);
  if (first === undefined || second === undefined || otherRoot === undefined) throw new Error("not committed");
  expect(new Set([first, second, otherRoot].map(({ blockNumber }) => blockNumber)).size).toBe(1);
  expect([first.transferIds, otherRoot.transferIds]).toEqual([ids, otherIds]);
  expect(second.transferIds).toHaveLength(1);
  for (const root of [first, second]) await setTransferRoot(chains, route, root);
  await setTransferRoot(chains, other, otherRoot);
  for (const [trip, root] of [
    [route, first],
    [route, second],
    [other, otherRoot],
  ] as const) {
    const totalLeaves = root.transferIds.length;
    for (const [transferIdTreeIndex, id] of root.transferIds.entries())
      await expectWithdrawable(trip, id, { transferIdTreeIndex, totalLeaves, rootHash: root.rootHash });
  }
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
