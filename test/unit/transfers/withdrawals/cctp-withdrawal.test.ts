import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { AttestationClient } from "../../../../src/hop/attestation-client.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../src/hop/transfer-events.js";
import { readCctpWithdrawal } from "../../../../src/transfers/withdrawals/cctp-withdrawal.js";
import {
  createDeferred,
  createLookupContext,
  createSentTransfer,
  createStatus,
  createTransferChainStub,
  repeatedByteAddress,
  repeatedByteHash,
} from "../../../support/stubs/transfer-fixtures.js";
import { createWithdrawalFinder } from "./settlement-world.js";

const usdc = getNetwork("mainnet").contracts.get("USDC");
const hopBridge = String(usdc?.get("optimism")?.cctpL2Bridge).toLowerCase();
const sourceTransmitter = String(usdc?.get("optimism")?.cctpMessageTransmitter).toLowerCase();
const transmitter = String(usdc?.get("arbitrum")?.cctpMessageTransmitter).toLowerCase();
const recipient = repeatedByteAddress("d2");
const hash = repeatedByteHash("2b");
const ATTESTATION = `0x${"ab".repeat(130)}`;

const sent = createSentTransfer({
  ...{ kind: "cctp", id: "77", token: "USDC", transactionHash: hash },
  event: {
    ...{ transferId: "77", destinationChainId: 42161, recipient, amount: 1_000n, bonderFee: 100n },
    ...{ amountOutMin: 0n, deadline: 0n, relayer: undefined },
  },
});

interface Message {
  readonly destinationDomain: number;
  readonly nonce: number;
  readonly mintRecipient: string;
  readonly amount: number;
  readonly burner: string;
}

/** Packs a message of CCTP V1 as the contracts do. */
function pack({ destinationDomain, nonce, mintRecipient, amount, burner }: Message): string {
  const word = (hex: string) => utils.hexZeroPad(hex, 32);
  const messenger = word(repeatedByteAddress("b0"));
  const header = utils.solidityPack(
    ["uint32", "uint32", "uint32", "uint64", "bytes32", "bytes32", "bytes32"],
    [0, 2, destinationDomain, nonce, messenger, messenger, utils.hexZeroPad("0x", 32)],
  );
  const body = utils.solidityPack(
    ["uint32", "bytes32", "bytes32", "uint256", "bytes32"],
    [0, messenger, word(mintRecipient), amount, word(burner)],
  );
  return utils.hexConcat([header, body]);
}

const honest: Message = { destinationDomain: 3, nonce: 77, mintRecipient: recipient, amount: 900, burner: hopBridge };

interface ReadOptions {
  readonly refusal?: string;
  readonly isUsed?: boolean;
  /** Default: the source has none. */
  readonly attestation?: string | Promise<string>;
  /** Contracts that emit CCTPTransferSent, in the order of their logs. */
  readonly senders?: readonly string[];
}

/** Returns the chains of a burn with these messages, and its attestation. @param refusal undefined: the message is received */
function createWorld(
  messages: readonly Message[],
  { refusal, isUsed = false, attestation, senders = [hopBridge] }: ReadOptions = {},
) {
  const source = createTransferChainStub("optimism");
  const emit = (address: string, topics: string[], data: string): void => {
    const event = { address, topics, data, transactionHash: hash };
    source.events.push({ event, block: 1_000, index: source.events.length });
  };
  for (const message of messages) {
    const data = utils.defaultAbiCoder.encode(["bytes"], [pack(message)]);
    emit(sourceTransmitter, [utils.id("MessageSent(bytes)")], data);
  }
  const topics = [EVENT_TOPICS.cctpTransferSent, encodeTopic(77n), encodeTopic(42161n), encodeTopic(recipient)];
  for (const address of senders)
    emit(address, topics, utils.defaultAbiCoder.encode(["uint256", "uint256"], [1_000, 100]));
  const calls: string[] = [];
  const destination: ChainClient = {
    ...createTransferChainStub("arbitrum").client,
    async sendBatch(batch): Promise<readonly RpcCallResult[]> {
      return batch.map(({ params }, index) => {
        const [{ to, data }] = params as [{ to: string; data: string }];
        if (index > 0) {
          calls.push(`${to} ${data.slice(0, 10)}`);
          if (refusal === undefined) return { result: encodeTopic(1n) };
          return { revert: new RevertError(`execution reverted: ${refusal}`, 3, undefined) };
        }
        const results = [encodeTopic(1_700_000_000n), encodeTopic(5n), encodeTopic(isUsed ? 1n : 0n)];
        const encoded = utils.defaultAbiCoder.encode(["tuple(bool,bytes)[]"], [results.map((each) => [true, each])]);
        return { result: encoded };
      });
    },
  };
  const chains = {
    hasCustomEndpoint: () => false,
    getClient: (slug: string) => (slug === "optimism" ? source.client : destination),
  };
  const attestations = new AttestationClient({
    baseUrl: "https://attestations.example",
    fetchJson: async () => ({ attestation: (await attestation) ?? "PENDING" }),
    now: () => 1,
  });
  return { context: createLookupContext({ chains }), attestations, calls };
}

/** Reads the withdrawal of a burn with these messages. */
function read(messages: readonly Message[], options?: ReadOptions) {
  const { context, attestations, calls } = createWorld(messages, options);
  return { withdrawal: readCctpWithdrawal(sent, attestations, 0, context), calls };
}

test("a burn without an attestation waits for one, and its message is that of the nonce", async () => {
  const { withdrawal, calls } = read([{ ...honest, nonce: 76 }, honest]);
  const proof = { kind: "cctp", transmitter, message: pack(honest), attestation: undefined };
  expect(await withdrawal).toEqual({ state: "WAITING_FOR_ATTESTATION", proof });
  expect(calls).toEqual([]);
});

test("an attested message that the contract takes can be redeemed", async () => {
  const { withdrawal, calls } = read([honest], { attestation: ATTESTATION });
  expect(await withdrawal).toMatchObject({ state: "REDEEMABLE", proof: { attestation: ATTESTATION } });
  expect(calls).toEqual([`${transmitter} 0x57ecfd28`]);
});

test("a message that the contract refuses is blocked, in its words", async () => {
  const { withdrawal } = read([honest], { attestation: ATTESTATION, refusal: "Pausable: paused" });
  const warning = "the contract on arbitrum refuses the message: Pausable: paused";
  expect(await withdrawal).toMatchObject({ state: "BLOCKED", warning });
});

test("a nonce that is used was received", async () => {
  const { withdrawal } = read([honest], { attestation: ATTESTATION, isUsed: true, refusal: "Nonce already used" });
  expect(await withdrawal).toEqual({ state: "RECEIVED" });
});

test.each(["Invalid signature: not attester", "Invalid attestation length", "Nonce already used"])(
  "what the contract calls wrong is not returned: %s",
  async (refusal) => {
    const { withdrawal } = read([honest], { attestation: ATTESTATION, refusal });
    await expect(withdrawal).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", check: "receive" });
  },
);

test.each<[string, Message[]]>([
  ["no message", []],
  ["another nonce", [{ ...honest, nonce: 78 }]],
  ["another destination", [{ ...honest, destinationDomain: 6 }]],
  ["another recipient", [{ ...honest, mintRecipient: repeatedByteAddress("66") }]],
  ["another amount", [{ ...honest, amount: 1_000 }]],
  ["another burner", [{ ...honest, burner: repeatedByteAddress("66") }]],
])("a receipt with %s is not believed", async (_, messages) => {
  const { withdrawal } = read(messages, { attestation: ATTESTATION });
  await expect(withdrawal).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", check: "message" });
});

test("a log of another contract that looks like the bridge's changes nothing", async () => {
  const { withdrawal } = read([honest], { senders: [repeatedByteAddress("66"), hopBridge] });
  expect(await withdrawal).toMatchObject({ state: "WAITING_FOR_ATTESTATION", proof: { message: pack(honest) } });
});

describe.each<[string, () => Promise<string>]>([
  ["fails", () => Promise.reject(new Error("429"))],
  ["does not answer in time", () => new Promise(() => {})],
])("while the attestation source %s", (_, ask) => {
  test("a nonce that is used was received", async () => {
    expect(await read([honest], { attestation: ask(), isUsed: true }).withdrawal).toEqual({ state: "RECEIVED" });
  });

  test("the error for any other names the source", async () => {
    await expect(read([honest], { attestation: ask() }).withdrawal).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the CCTP attestation source does not respond",
    });
  });
});

test.each([
  [20, 500_000],
  [1_100, 4_000],
])("a caller with %d ms does not end the wait of one with %d ms", async (shortMs, longMs) => {
  const attestation = createDeferred<string>();
  const { context, attestations } = createWorld([honest], { attestation: attestation.promise });
  const { finder } = createWithdrawalFinder({ attestations, timeoutMs: 600_000 });
  const status = createStatus({ sent, delivery: undefined, isFinal: false });
  const hurried = finder.find(status, { ...context, remainingMs: () => shortMs });
  const patient = finder.find(status, { ...context, remainingMs: () => longMs });
  await expect(hurried).rejects.toMatchObject({ message: "the CCTP attestation source does not respond" });
  attestation.resolve(ATTESTATION);
  expect(await patient).toMatchObject({ state: "REDEEMABLE" });
});
