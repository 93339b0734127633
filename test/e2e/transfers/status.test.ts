import {
  CCTPMessageTransmitter__factory as CctpMessageTransmitter,
  L1_Bridge__factory as L1Bridge,
  L1_HopCCTPImplementation__factory as L1Cctp,
  L2_Bridge__factory as L2Bridge,
  L2_HopCCTPImplementation__factory as L2Cctp,
} from "@hop-protocol/sdk";
import { sdkConfig } from "@hop-protocol/sdk/config";
import { BigNumber, providers, utils } from "ethers";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { getTokenDecimals } from "../../../src/hop/tokens.js";
import golden from "../../golden/quotes.json" with { type: "json" };
import { useGateway } from "../../support/service/in-process-gateway.js";

// Reads the expected status of each seeded transfer from the chains by independent means: ethers, the ABIs of the real
// contracts, every log of the chain, and every address in the SDK's address book.

const { chains, transfers } = inject("network");
const prices: Record<string, number> = golden.inputs.pricesUsd;
const slugOf = new Map(Object.entries(chains).map(([slug, { chainId }]) => [chainId, slug]));
const events = new utils.Interface(
  [L2Bridge.abi, L1Bridge.abi, L2Cctp.abi, L1Cctp.abi, CctpMessageTransmitter.abi]
    .flat()
    .filter((entry): entry is never => (entry as { type: string }).type === "event")
    .filter((entry, index, all) => all.findIndex((other) => JSON.stringify(other) === JSON.stringify(entry)) === index),
);
const sendEventNames = ["TransferSent", "TransferSentToL2", "CCTPTransferSent"];

const hopAddresses = new Set(
  (JSON.stringify(sdkConfig.mainnet.addresses).match(/0x[0-9a-fA-F]{40}/g) ?? []).map((address) =>
    address.toLowerCase(),
  ),
);

const gateway = useGateway();
const logs = new Map<string, ReturnType<typeof parse>[]>();

function parse(log: providers.Log) {
  if (!hopAddresses.has(log.address.toLowerCase())) return undefined;
  try {
    return { log, ...events.parseLog(log) };
  } catch {
    return undefined;
  }
}

function providerOf(slug: string): providers.StaticJsonRpcProvider {
  const chain = chains[slug];
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return new providers.StaticJsonRpcProvider(chain.url, { chainId: chain.chainId, name: slug });
}

beforeAll(async () => {
  for (const slug of Object.keys(chains)) {
    const all = await providerOf(slug).getLogs({ fromBlock: 0, toBlock: "latest" });
    logs.set(slug, all.map(parse));
  }
});

const eventsOn = (slug: string, name: string) =>
  (logs.get(slug) ?? []).filter((event): event is NonNullable<typeof event> => event?.name === name);

/** Finds the delivery of a transfer in the events of its destination. */
function findDelivery(sourceSlug: string, sent: NonNullable<ReturnType<typeof parse>>) {
  const { args } = sent;
  const destinationSlug = slugOf.get(args.chainId.toNumber()) ?? "";
  switch (sent.name) {
    case "TransferSent": {
      const [bonded] = eventsOn(destinationSlug, "WithdrawalBonded").filter(
        (event) => event.args.transferId === args.transferId,
      );
      const [withdrew] = eventsOn(destinationSlug, "Withdrew").filter(
        (event) => event.args.transferId === args.transferId,
      );
      return { destinationSlug, log: (bonded ?? withdrew)?.log, isBond: bonded !== undefined };
    }
    case "TransferSentToL2": {
      const getValues = (event: typeof sent): string =>
        ["recipient", "amount", "amountOutMin", "deadline", "relayer", "relayerFee"]
          .map((name) => event.args[name])
          .join();
      const equalSends = eventsOn(sourceSlug, "TransferSentToL2").filter(
        (event) =>
          getValues(event) === getValues(sent) &&
          event.args.chainId.eq(args.chainId) &&
          event.log.address === sent.log.address,
      );
      const order = equalSends.findIndex(({ log }) => log === sent.log);
      const completed = eventsOn(destinationSlug, "TransferFromL1Completed").filter(
        (event) => getValues(event) === getValues(sent),
      );
      return { destinationSlug, log: completed[order]?.log, isBond: false };
    }
    default: {
      const domains: Record<string, number> = { ethereum: 0, optimism: 2, arbitrum: 3, base: 6, polygon: 7 };
      const [received] = eventsOn(destinationSlug, "MessageReceived").filter(
        (event) => event.args.nonce.eq(args.cctpNonce) && event.args.sourceDomain === domains[sourceSlug],
      );
      return { destinationSlug, log: received?.log, isBond: false };
    }
  }
}

async function expectedStatus(seeded: (typeof transfers)[number]): Promise<Record<string, unknown>> {
  const source = providerOf(seeded.sourceSlug);
  const receipt = await source.getTransactionReceipt(seeded.transactionHash);
  const sends = receipt.logs.flatMap((log) => {
    const event = parse(log);
    return event !== undefined && sendEventNames.includes(event.name) ? [event] : [];
  });
  const idOf = (event: (typeof sends)[number]): string =>
    event.args.transferId ?? event.args.cctpNonce?.toString() ?? seeded.transactionHash;
  const sent = sends.find((event) => idOf(event) === seeded.transferId);
  const parsedSend =
    sent &&
    (logs.get(seeded.sourceSlug) ?? []).find(
      (event) => event?.log.transactionHash === sent.log.transactionHash && event.log.logIndex === sent.log.logIndex,
    );
  if (sent === undefined || parsedSend === undefined) throw new Error(`no send event for ${seeded.name}`);
  const { args } = sent;
  const { destinationSlug, log, isBond } = findDelivery(seeded.sourceSlug, parsedSend);
  const bond = log && (await providerOf(destinationSlug).getTransaction(log.transactionHash));
  const block = await source.getBlock(receipt.blockHash);
  const amountOutMin: BigNumber = args.amountOutMin ?? BigNumber.from(0);
  const deadline: BigNumber = args.deadline ?? BigNumber.from(0);
  const fee: BigNumber = args.bonderFee ?? args.relayerFee;
  const decimals = getTokenDecimals(seeded.token);
  const price = prices[seeded.token] ?? Number.NaN;
  const toWholeTokens = (value: BigNumber): number => Number(utils.formatUnits(value, decimals));
  const unbondable =
    destinationSlug === "ethereum" && sent.name === "TransferSent" && !(amountOutMin.isZero() && deadline.isZero());
  return {
    transferId: seeded.transferId,
    transactionHash: seeded.transactionHash,
    sourceChainId: chains[seeded.sourceSlug]?.chainId,
    sourceChainSlug: seeded.sourceSlug,
    destinationChainId: args.chainId.toNumber(),
    destinationChainSlug: destinationSlug,
    accountAddress: receipt.from.toLowerCase(),
    amount: args.amount.toString(),
    amountFormatted: toWholeTokens(args.amount),
    amountUsd: toWholeTokens(args.amount) * price,
    amountOutMin: amountOutMin.toString(),
    deadline: deadline.toNumber(),
    recipientAddress: args.recipient.toLowerCase(),
    bonderFee: fee.toString(),
    bonderFeeFormatted: toWholeTokens(fee),
    bonderFeeUsd: toWholeTokens(fee) * price,
    bonded: log !== undefined,
    bondTransactionHash: log?.transactionHash ?? "",
    bonderAddress: isBond ? bond?.from.toLowerCase() : "",
    token: seeded.token,
    timestamp: block.timestamp,
    state: log !== undefined ? "BONDED" : unbondable ? "UNBONDABLE" : "PENDING",
    otherTransferIds: sends.filter((event) => event !== sent).map(idOf),
  };
}

describe("the status of each seeded transfer", () => {
  const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");

  test.each(real.map((seeded) => [seeded.name, seeded] as const))("is the one on the chains: %s", async (_, seeded) => {
    const expected = await expectedStatus(seeded);
    expect(expected.state).toBe(seeded.expectedState);
    const { transferId, transactionHash } = seeded;
    const both = await gateway.get(`/v1/transfer-status?transferId=${transferId}&transactionHash=${transactionHash}`);
    expect({ status: both.status, body: both.body }).toEqual({ status: 200, body: expected });
    expect(Object.keys(both.body as object)).toEqual(Object.keys(expected));
  });

  test.each(real.map((seeded) => [seeded.name, seeded] as const))(
    "is found by hash alone: %s",
    async (_, { transactionHash }) => {
      const { status, body } = await gateway.get(
        `/v1/transfer-status?transferHash=${transactionHash.toUpperCase().replace("0X", "0x")}`,
      );
      expect(status).toBe(200);
      expect(body).toMatchObject({ transactionHash });
      const { transferId, otherTransferIds } = body as { transferId: string; otherTransferIds: string[] };
      const ofTransaction = real
        .filter((transfer) => transfer.transactionHash === transactionHash)
        .map((transfer) => transfer.transferId);
      expect([transferId, ...otherTransferIds]).toEqual(expect.arrayContaining(ofTransaction));
    },
  );

  test.each(real.map((seeded) => [seeded.name, seeded] as const))("is found by ID alone: %s", async (_, seeded) => {
    const { status, body } = await gateway.get(`/v1/transfer-status?transferId=${seeded.transferId}`);
    expect({ status, body }).toMatchObject({ status: 200, body: { transactionHash: seeded.transactionHash } });
  });

  test("is TRANSFER_NOT_FOUND for lookalikes of transfers", async () => {
    const lookalikes = transfers.filter(({ expectedState }) => expectedState === "NOT_FOUND");
    expect(lookalikes.length).toBeGreaterThan(0);
    for (const { transactionHash, transferId } of lookalikes) {
      for (const query of [`transferHash=${transactionHash}`, `transferId=${transferId}`]) {
        const { status, body } = await gateway.get(`/v1/transfer-status?${query}`);
        expect({ status, body }).toMatchObject({ status: 404, body: { reason: "TRANSFER_NOT_FOUND" } });
      }
    }
  });

  test("covers every kind of transfer in every possible state", () => {
    const seen = new Set(real.map(({ kind, expectedState }) => `${kind} ${expectedState}`));
    expect([...seen].sort()).toEqual([
      "cctp BONDED",
      "cctp PENDING",
      "l1-to-l2 BONDED",
      "l1-to-l2 PENDING",
      "l2-to-l1 BONDED",
      "l2-to-l1 PENDING",
      "l2-to-l1 UNBONDABLE",
      "l2-to-l2 BONDED",
      "l2-to-l2 PENDING",
    ]);
    const eventsOfAll = [...logs.values()].flat();
    for (const name of ["WithdrawalBonded", "Withdrew", "TransferFromL1Completed", "MessageReceived"]) {
      expect(
        eventsOfAll.some((event) => event?.name === name),
        name,
      ).toBe(true);
    }
    // Two in one transaction, and two from ethereum with equal values.
    expect(new Set(real.map(({ transactionHash }) => transactionHash)).size).toBe(real.length - 1);
    const l1Sends = eventsOn("ethereum", "TransferSentToL2").map(({ log: { topics, data } }) =>
      [...topics, data].join(),
    );
    expect(new Set(l1Sends).size).toBe(l1Sends.length - 1);
  });
});
