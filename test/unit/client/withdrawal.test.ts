import { create } from "@bufbuild/protobuf";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { withdrawalContracts } from "../../../gen/hop/withdrawal-contracts.js";
import type { components } from "../../../gen/openapi.js";
import {
  encodeWithdrawal,
  GetWithdrawalResponseSchema,
  GetWithdrawalResponse_State as State,
  verifyWithdrawal,
} from "../../../src/client.js";
import { ContractRegistry } from "../../../src/hop/contract-registry.js";
import { getNetwork, NETWORK_SLUGS } from "../../../src/hop/networks.js";

type Withdrawal = components["schemas"]["GetWithdrawalResponse"];
type MerkleProof = components["schemas"]["MerkleProof"];
type CctpMessage = components["schemas"]["CctpMessage"];

const { keccak256, hexConcat, hexZeroPad, hexlify } = utils;
const contracts = new utils.Interface([
  "function withdraw(address, uint256, bytes32, uint256, uint256, uint256, bytes32, uint256, uint256, bytes32[], uint256)",
  "function receiveMessage(bytes, bytes)",
]);
const word = (value: number): string => keccak256(hexZeroPad(hexlify(value), 32));
const EMPTY = keccak256(`0x${"00".repeat(32)}`);
/** Starts with a zero, which one could leave out without another ID. */
const NONCE = `0x00${word(7).slice(4)}`;
const MAX_UINT256 = (2n ** 256n - 1n).toString();

/** Creates a transfer of HOP from Arbitrum to Optimism that is the last of three. */
function createWithdrawal(): Withdrawal & { merkleProof: MerkleProof } {
  const recipientAddress = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
  const identity = ["5000000000000000000000", NONCE, "50000000000000000000", "4900000000000000000000", MAX_UINT256];
  const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
  const transferId = keccak256(utils.defaultAbiCoder.encode(types, [10, recipientAddress, ...identity]));
  const siblings = [EMPTY, keccak256(hexConcat([word(1), word(2)]))];
  const rootHash = keccak256(hexConcat([siblings[1] ?? "", keccak256(hexConcat([transferId, EMPTY]))]));
  const [amount = "", transferNonce = "", bonderFee = "", amountOutMin = "", deadline = ""] = identity;
  return {
    ...{ transferId, transactionHash: word(3), token: "HOP" },
    ...{ sourceChainSlug: "arbitrum", sourceChainId: 42161, destinationChainSlug: "optimism", destinationChainId: 10 },
    ...{ recipientAddress, amount, state: "WITHDRAWABLE", receivedTransactionHash: "", otherTransferIds: [] },
    merkleProof: {
      bridgeAddress: "0x03d7f750777ec48d39d080b020d83eb2cb4e3547",
      ...{ transferNonce, bonderFee, amountOutMin, deadline, rootHash, siblings, commitTransactionHash: word(4) },
      ...{ transferRootTotalAmount: "9000000000000000000000", transferIdTreeIndex: 2, totalLeaves: 3 },
    },
  };
}

const ARBITRUM_MESSENGER = "0x19330d10D9Cc8751218eaf51E8885D058642E08A";
const BASE_MESSENGER = "0x1682Ae6375C4E4A97e4B583BC394c861A46D8962";
const HOP_ON_ARBITRUM = "0x6504bfcab789c35325ca4329f1f41fac340bf982";

/** The parts of a message of CCTP V1. */
const MESSAGE = {
  version: 0,
  sourceDomain: 3,
  destinationDomain: 6,
  nonce: 107_707,
  sender: ARBITRUM_MESSENGER,
  recipient: BASE_MESSENGER,
  destinationCaller: "0x00",
  bodyVersion: 0,
  burnToken: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
  mintRecipient: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
  amount: 24_000_000,
  messageSender: HOP_ON_ARBITRUM,
};

function packMessage(changes: Partial<typeof MESSAGE> = {}): string {
  const sizes: Readonly<Record<string, number>> = {
    ...{ version: 4, sourceDomain: 4, destinationDomain: 4, nonce: 8, bodyVersion: 4 },
  };
  const parts = Object.entries({ ...MESSAGE, ...changes });
  return hexConcat(parts.map(([name, value]) => hexZeroPad(hexlify(value), sizes[name] ?? 32)));
}

/** Creates a transfer of USDC from Arbitrum to Base, of which the bonder fee was kept. */
function createRedemption(message = packMessage()): Withdrawal & { cctp: CctpMessage } {
  const { merkleProof: _, ...withdrawal } = createWithdrawal();
  return {
    ...{ ...withdrawal, transferId: "107707", token: "USDC", amount: "25000000", state: "REDEEMABLE" },
    ...{ destinationChainSlug: "base", destinationChainId: 8453 },
    cctp: {
      messageTransmitterAddress: "0xad09780d193884d503182ad4588450c416d6f9d4",
      message,
      attestation: hexConcat([word(8), word(9), "0x1b", word(10), word(11), "0x1c"]),
    },
  };
}

describe("encodeWithdrawal", () => {
  test("encodes a proof as ethers encodes withdraw", () => {
    const withdrawal = createWithdrawal();
    const { recipientAddress, amount, merkleProof } = withdrawal;
    const { transferNonce, bonderFee, amountOutMin, deadline, rootHash, transferRootTotalAmount } = merkleProof;
    const data = contracts.encodeFunctionData("withdraw", [
      ...[recipientAddress, amount, transferNonce, bonderFee, amountOutMin, deadline, rootHash],
      ...[transferRootTotalAmount, 2, merkleProof.siblings, 3],
    ]);
    expect(data).toMatch(/^0x0f7aadb7/);
    expect(encodeWithdrawal(withdrawal)).toEqual({ chainId: 10, to: merkleProof.bridgeAddress, data });
  });

  test("encodes the proof of a tree of one leaf, which has no siblings", () => {
    const withdrawal = createWithdrawal();
    Object.assign(withdrawal.merkleProof, { rootHash: withdrawal.transferId, siblings: [] });
    Object.assign(withdrawal.merkleProof, { transferIdTreeIndex: 0, totalLeaves: 1 });
    const decoded = contracts.decodeFunctionData("withdraw", encodeWithdrawal(withdrawal).data);
    expect(decoded[6]).toBe(withdrawal.transferId);
    expect(decoded.slice(8).map(String)).toEqual(["0", "", "1"]);
  });

  test("encodes an attested message as ethers encodes receiveMessage", () => {
    const { cctp } = createRedemption();
    const data = contracts.encodeFunctionData("receiveMessage", [cctp.message, cctp.attestation]);
    expect(data).toMatch(/^0x57ecfd28/);
    expect(encodeWithdrawal(createRedemption())).toEqual({ chainId: 8453, to: cctp.messageTransmitterAddress, data });
  });

  test.each(["WAITING_FOR_ROOT", "BLOCKED"] as const)(
    "encodes the proof of %s, which the contract may accept later",
    (state) => {
      expect(encodeWithdrawal({ ...createWithdrawal(), state })).toEqual(encodeWithdrawal(createWithdrawal()));
    },
  );

  test("takes messages of Connect and gRPC too", () => {
    const { merkleProof: proof, state, ...withdrawal } = createWithdrawal();
    const { cctp, state: _, ...redemption } = createRedemption();
    const messages = [
      { ...withdrawal, state: State[state], proof: { case: "merkleProof" as const, value: proof } },
      { ...redemption, state: State.REDEEMABLE, proof: { case: "cctp" as const, value: cctp } },
    ].map((fields) => create(GetWithdrawalResponseSchema, { ...fields, availableAt: undefined } as object));
    expect(messages.map(encodeWithdrawal)).toEqual([createWithdrawal(), createRedemption()].map(encodeWithdrawal));
  });

  const states = Object.keys(State).filter((name) => Number.isNaN(Number(name))) as (keyof typeof State)[];
  test.each(states)("names the state %s if there is no proof", (name) => {
    const { merkleProof: _, ...json } = createWithdrawal();
    const message = create(GetWithdrawalResponseSchema, {
      ...json,
      availableAt: undefined,
      state: State[name],
    } as object);
    for (const withdrawal of [{ ...json, state: name as Withdrawal["state"] }, message]) {
      expect(() => encodeWithdrawal(withdrawal)).toThrow(`in the state ${name} has no complete proof`);
      expect(() => verifyWithdrawal(withdrawal)).toThrow(`in the state ${name} has no complete proof`);
    }
  });

  test("refuses a message without an attestation, and one that is not hex", () => {
    const { attestation: _, ...cctp } = createRedemption().cctp;
    const waiting: Withdrawal = { ...createRedemption(), state: "WAITING_FOR_ATTESTATION", cctp };
    expect(() => verifyWithdrawal(waiting)).not.toThrow();
    expect(() => encodeWithdrawal(waiting)).toThrow("in the state WAITING_FOR_ATTESTATION has no complete proof");
    for (const attestation of ["", "0x", "0x123", "PENDING"])
      expect(() => encodeWithdrawal({ ...createRedemption(), cctp: { ...cctp, attestation } })).toThrow("attestation");
  });
});

describe("verifyWithdrawal", () => {
  const flip = (hex: string): string => hex.slice(0, -1) + (hex.endsWith("0") ? "1" : "0");

  test("accepts upper case", () => {
    const upper = JSON.parse(
      JSON.stringify(createWithdrawal()).replaceAll(/[0-9a-f]{40,64}/g, (hex) => hex.toUpperCase()),
    );
    expect(encodeWithdrawal(upper)).toEqual(encodeWithdrawal(createWithdrawal()));
  });

  const { merkleProof, ...transfer } = createWithdrawal();
  const wrongNumbers = ["", "1", "-1", "0x1", "1.5", `${MAX_UINT256}0`, (2n ** 256n).toString()];
  test.each<[string, Partial<Withdrawal>[]]>([
    ["transferId", [{ transferId: flip(transfer.transferId) }, { transferId: "107707" }]],
    ["token", [{ token: "ETH" }, { token: "USDC" }, { token: "constructor" }]],
    ["sourceChainSlug", [{ sourceChainSlug: "nova" }]],
    ["sourceChainId", [{ sourceChainId: 42170 }, { sourceChainId: 4 }]],
    [
      "source chain",
      [
        { sourceChainId: 1, sourceChainSlug: "ethereum" },
        { sourceChainId: 10, sourceChainSlug: "optimism" },
        { sourceChainId: 1442, sourceChainSlug: "polygonzk" },
      ],
    ],
    ["destinationChainSlug", [{ destinationChainSlug: "base" }]],
    ["destinationChainId", [{ destinationChainId: 420 }, { destinationChainId: 8453 }]],
    ["destination chain", [{ destinationChainId: 8453, destinationChainSlug: "base" }]],
    [
      "recipientAddress",
      [
        { recipientAddress: hexZeroPad(transfer.recipientAddress, 32) },
        { recipientAddress: flip(transfer.recipientAddress) },
        { recipientAddress: "0x" },
      ],
    ],
    ["amount", wrongNumbers.map((amount) => ({ amount }))],
  ])("finds a changed %s of a transfer with a proof", (_, changes) => {
    for (const change of changes)
      expect(() => verifyWithdrawal({ ...createWithdrawal(), ...change }), JSON.stringify(change)).toThrow(
        "does not fit",
      );
  });

  test.each<[object, string]>([
    [{ sourceChainSlug: "moon" }, 'sourceChainSlug is no chain of Hop: "moon"'],
    [{ sourceChainSlug: undefined }, "sourceChainSlug is no chain of Hop: undefined"],
    [{ sourceChainId: "42161" }, 'sourceChainId is not an integer: "42161", arbitrum has 42161 or 421613'],
    [{ destinationChainId: undefined }, "destinationChainId is not an integer: undefined, optimism has 10 or 420"],
    [{ destinationChainId: 0.5 }, "destinationChainId is not an integer: 0.5, optimism has 10 or 420"],
    [{ destinationChainId: 8453 }, "destinationChainId is 8453, but optimism has 10 or 420"],
    [{ destinationChainSlug: "x".repeat(99) }, `destinationChainSlug is no chain of Hop: "${"x".repeat(39)}`],
  ])("names what is wrong with the chains of %o", (change, message) => {
    const withdrawal = { ...createWithdrawal(), ...change };
    expect(() => verifyWithdrawal(withdrawal)).toThrow(new Error(`the withdrawal does not fit: ${message}`));
  });

  test.each<[keyof MerkleProof, unknown[]]>([
    ["bridgeAddress", [flip(merkleProof.bridgeAddress), "", "0x3e4a3a4796d16c0cd582c382691998f7c06420b6"]],
    [
      "transferNonce",
      [NONCE.replace("0x00", "0x"), flip(merkleProof.transferNonce), "0x", `${merkleProof.transferNonce}00`],
    ],
    ["bonderFee", wrongNumbers],
    ["amountOutMin", wrongNumbers],
    ["deadline", wrongNumbers],
    ["rootHash", [flip(merkleProof.rootHash), "0x", transfer.transferId]],
    ["transferIdTreeIndex", [0, 1, 3, -1, 2.5, 6]],
    ["siblings", [[], merkleProof.siblings.slice(0, 1), merkleProof.siblings.toReversed(), ["0x", "0x"]]],
    ["totalLeaves", [0, 2, 5, 1e9]],
    // A number of 256 bits is all that can be told of it: the total is not in the root.
    ["transferRootTotalAmount", wrongNumbers.filter((text) => text !== "1")],
  ])("finds a changed %s of a proof", (field, values) => {
    for (const value of values) {
      const changed = { ...createWithdrawal(), merkleProof: { ...merkleProof, [field]: value } };
      expect(() => verifyWithdrawal(changed), String(value)).toThrow("does not fit");
    }
  });

  test.each<[keyof typeof MESSAGE, string | number]>([
    ["version", 1],
    ["sourceDomain", 2],
    ["destinationDomain", 3],
    ["nonce", 107_708],
    ["sender", BASE_MESSENGER],
    ["recipient", ARBITRUM_MESSENGER],
    ["destinationCaller", MESSAGE.mintRecipient],
    ["mintRecipient", flip(MESSAGE.mintRecipient)],
    ["amount", 25_000_001],
    ["messageSender", flip(HOP_ON_ARBITRUM)],
  ])("finds another %s of a message", (part, value) => {
    expect(() => verifyWithdrawal(createRedemption())).not.toThrow();
    expect(() => verifyWithdrawal(createRedemption(packMessage({ [part]: value })))).toThrow(/does not fit: message/);
  });

  test("finds a message of another length, and a changed transfer", () => {
    const { message, messageTransmitterAddress } = createRedemption().cctp;
    for (const other of ["0x", message.slice(0, -2), `${message}00`, message.replace(/.$/, "x")])
      expect(() => verifyWithdrawal(createRedemption(other))).toThrow("message is not that of a burn");
    for (const change of [
      { transferId: "107708" },
      { token: "ETH" },
      { token: "USDC.e" },
      { recipientAddress: flip(transfer.recipientAddress) },
      { amount: "23999999" },
      { sourceChainId: 10, sourceChainSlug: "optimism" },
      { sourceChainId: 100, sourceChainSlug: "gnosis" },
      { destinationChainId: 10, destinationChainSlug: "optimism" },
      { cctp: { message, messageTransmitterAddress: flip(messageTransmitterAddress) } },
    ] as Partial<Withdrawal>[])
      expect(() => verifyWithdrawal({ ...createRedemption(), ...change }), JSON.stringify(change)).toThrow(
        "does not fit",
      );
  });
});

test("the client knows the contracts that the service knows", () => {
  const count = NETWORK_SLUGS.reduce((sum, slug) => sum + getNetwork(slug).chains.size, 0);
  expect(Object.keys(withdrawalContracts)).toHaveLength(count);
  for (const network of NETWORK_SLUGS.map(getNetwork)) {
    const registry = new ContractRegistry(network);
    for (const chain of network.chains.values()) {
      const known = withdrawalContracts[chain.chainId];
      const senders = [...registry.getSendingContracts(chain)];
      expect(known?.slug).toBe(chain.slug);
      for (const token of network.contracts.keys())
        expect(known?.bridges[token]).toBe(registry.findBridge(token, chain));
      expect(known?.messageTransmitter).toBe(registry.findMessageTransmitter(chain));
      expect(known?.cctpBridge).toBe(senders.find(([, { kind }]) => kind === "cctp")?.[0]);
    }
  }
});
