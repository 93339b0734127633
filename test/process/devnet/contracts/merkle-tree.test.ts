import { utils } from "ethers";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileContracts } from "../../../../devnet/cache/compile-contracts.js";
import { type Anvil, startAnvil } from "../../../../devnet/chain/anvil.js";
import { toHexQuantity } from "../../../../devnet/chain/json-rpc.js";
import { deployer } from "../../../../devnet/deploy/accounts.js";
import {
  encodeInitializerCalls,
  sendCallsInBatches,
  setContractCode,
} from "../../../../devnet/deploy/contract-placement.js";
import { encodeWord } from "../../../../src/chain/abi/abi-encoding.js";
import { type ContractCall, decodeMulticall, encodeMulticall } from "../../../../src/chain/abi/multicall.js";
import { merkleRoot, merkleSiblings } from "../../../../src/hop/merkle-tree.js";
import { isFullEffort } from "../../../support/effort.js";

// Random trees in the bridge's own functions. A root that we computed is set, as by the messenger. Then the bridge computes
// the root of the leaves itself to settle bonds (settleBondedWithdrawals), which fails where it differs from the one set, and
// it verifies the proof of one leaf (withdraw). Many trees share one eth_call, so nothing is kept.

const TREES = isFullEffort ? 10_000 : 300;
const TREES_PER_CALL = 25;
const CHAIN_ID = 10;
const AMOUNT = 1n;

const multicall = "0x0000000000000000000000000000000000000a01";
const bridge = "0x0000000000000000000000000000000000000A02";
const hToken = "0x0000000000000000000000000000000000000A03";
const recipient = "0x0000000000000000000000000000000000000A04";
const nobody = "0x0000000000000000000000000000000000000000";

const artifacts = compileContracts();
const bridgeAbi = new utils.Interface(artifacts.L2Bridge?.abi as string[]);

let anvil: Anvil;

beforeAll(async () => {
  anvil = await startAnvil({ chainId: CHAIN_ID, gasPrice: 1n });
  const placements = [
    { contract: "Multicall3", address: multicall },
    {
      contract: "Token",
      address: hToken,
      initializer: { method: "initialize", values: ["hToken", "hToken", 18, bridge, [], []] },
    },
    {
      contract: "L2Bridge",
      address: bridge,
      // The multicall contract is the messenger.
      initializer: { method: "initialize", values: [hToken, nobody, [], 0, 0, multicall, [], 0] },
    },
  ];
  await setContractCode(anvil.rpc, artifacts, placements);
  const calls = encodeInitializerCalls(artifacts, placements);
  const artifact = artifacts.Multicall3;
  if (artifact === undefined) throw new Error("no such contract");
  await anvil.rpc("anvil_setBalance", [deployer, toHexQuantity(10n ** 24n)]);
  await sendCallsInBatches(anvil.rpc, multicall, artifact, calls);
});
afterAll(() => anvil.stop());

interface Tree {
  readonly leaves: readonly string[];
  readonly index: number;
  readonly nonce: string;
}

const transferId = (nonce: string): string =>
  utils.keccak256(
    utils.defaultAbiCoder.encode(
      ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"],
      [CHAIN_ID, recipient, AMOUNT, nonce, 0, 0, 0],
    ),
  );

/** Sizes of trees, every height alike, and any number from which the place of the leaf to prove follows. */
const shapes = fc.tuple(
  fc.integer({ min: 0, max: 10 }).chain((height) => fc.integer({ min: 1, max: 2 ** height })),
  fc.nat(),
);

/** Builds a tree that no other number has. */
function buildTree([size, place]: [number, number], number: number): Tree {
  const index = place % size;
  const nonce = utils.id(`nonce ${number}`);
  const leaves = Array.from({ length: size }, (_, at) => `0x${encodeWord(BigInt(number * 2_048 + at + 1))}`);
  leaves[index] = transferId(nonce);
  return { leaves, index, nonce };
}

/** Encodes the calls of one tree; by hand where there are many leaves, for which ethers takes long. */
function encodeCalls({ leaves, index, nonce }: Tree): ContractCall[] {
  const rootHash = merkleRoot(leaves);
  // A total that no other tree of the same root has.
  const total = BigInt(utils.id(nonce)) >> 128n;
  const parts = [recipient, AMOUNT, nonce, 0, 0, 0];
  const proof = [rootHash, total, index, merkleSiblings(leaves, index), leaves.length];
  const leafWords = [96n, total, BigInt(leaves.length), ...leaves].map(encodeWord).join("");
  return [
    bridgeAbi.encodeFunctionData("setTransferRoot", [rootHash, total]),
    bridgeAbi.getSighash("settleBondedWithdrawals") + encodeWord(nobody) + leafWords,
    bridgeAbi.encodeFunctionData("withdraw", [...parts, ...proof]),
  ].map((data) => ({ to: bridge, data }));
}

test("the bridge computes the same root of random leaves and accepts the proof of one of them", async () => {
  const random = fc.sample(shapes, TREES).map(buildTree);
  expect(new Set(random.map(({ leaves }) => leaves.length)).size).toBeGreaterThan(50);
  for (let start = 0; start < random.length; start += TREES_PER_CALL) {
    const batch = random.slice(start, start + TREES_PER_CALL);
    const calls = batch.flatMap(encodeCalls);
    const call = { to: multicall, data: encodeMulticall(calls) };
    const results = decodeMulticall((await anvil.rpc("eth_call", [call, "latest"])) as string, calls.length) ?? [];
    expect(results).toHaveLength(calls.length);
    const failed = batch.filter((_, at) => results.slice(at * 3, at * 3 + 3).includes(undefined));
    expect(failed.map(({ leaves, index }) => ({ size: leaves.length, index }))).toEqual([]);
  }
});
