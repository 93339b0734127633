import { readFileSync } from "node:fs";
import { sdkConfig } from "@hop-protocol/sdk/config";
import * as sdk from "@hop-protocol/sdk/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { getContract } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import type { EventLog, TransactionReceipt } from "../../../../devnet/chain/transactions.js";
import { messenger } from "../../../../devnet/deploy/accounts.js";
import { createTestChains, expectTransferId, parseLog } from "./contract-chains.js";

interface GoldenReceipt {
  readonly transaction: { readonly from: string; readonly to: string; readonly input: string; readonly value: string };
  readonly receipt: { readonly logs: readonly EventLog[] };
}

interface Golden {
  readonly transfers: readonly {
    readonly token: string;
    readonly sourceChain: string;
    readonly destinationChain: string;
    readonly transferId: string | null;
    readonly sourceTxHash: string;
    readonly bondTxHash?: string;
    readonly completedTxHash?: string;
  }[];
  readonly receipts: Readonly<Record<string, GoldenReceipt>>;
}

const golden = JSON.parse(readFileSync("test/golden/transfers.json", "utf8")) as Golden;
/** Shortly before the recorded transfers, whose deadlines are a week after them. */
const timestamp = 1_795_168_000;
const slugs = ["ethereum", "polygon", "arbitrum", "optimism"] as const;
type Slug = (typeof slugs)[number];

/** Sender and recipient of the recorded transfers. */
const sender = "0x00000000000000000000000000000000000aA001";
const recipient = "0x00000000000000000000000000000000000BB002";
const oneEther = 10n ** 18n;

const l2Abi = sdk.L2_Bridge__factory.createInterface();
const l1Abi = sdk.L1_ERC20_Bridge__factory.createInterface();

const chains = createTestChains(slugs, timestamp);

beforeAll(() => chains.start());

afterAll(() => chains.stop());

// Sends and receives transfers with the recorded transactions. Events, their order, and the IDs of received transfers
// must equal the recorded ones. Sent amounts differ, because the state of the pools differs.

test("USDT from polygon to arbitrum is swapped, sent, bonded and swapped", async () => {
  const transfer = findTransfer("USDT");
  await fundAccount(chains.bySlug, "polygon", "USDT", sender, 500_000_000n);
  await chains.approve(
    "polygon",
    sender,
    getContract("USDT", "polygon", "l2CanonicalToken"),
    getContract("USDT", "polygon", "l2AmmWrapper"),
  );
  const sent = await replay("polygon", transfer.sourceTxHash);
  expect(outline(sent.receipt, "polygon")).toEqual(outline(sent.expected.receipt, "polygon"));
  expectTransferId(sent.receipt, "polygon", 0);

  const bonded = await replay("arbitrum", transfer.bondTxHash);
  expect(outline(bonded.receipt, "arbitrum")).toEqual(outline(bonded.expected.receipt, "arbitrum"));
  expect(bonded.receipt.logs[0]?.topics[1]).toBe(transfer.transferId);
  expect(bonded.receipt.logs[0]?.data).toBe(bonded.expected.receipt.logs[0]?.data);
});

test("HOP from arbitrum to optimism is sent without a swap", async () => {
  const transfer = findTransfer("HOP");
  await fundAccount(chains.bySlug, "arbitrum", "HOP", sender, 5_000n * oneEther);
  const sent = await replay("arbitrum", transfer.sourceTxHash);
  expect(outline(sent.receipt, "arbitrum")).toEqual(outline(sent.expected.receipt, "arbitrum"));
  expectTransferId(sent.receipt, "arbitrum", 0);

  const bonded = await replay("optimism", transfer.bondTxHash);
  expect(outline(bonded.receipt, "optimism")).toEqual(outline(bonded.expected.receipt, "optimism"));
  expect(bonded.receipt.logs[0]?.topics[1]).toBe(transfer.transferId);
});

test("ETH from ethereum to arbitrum is sent with a relayer", async () => {
  const transfer = findTransfer("ETH");
  const sent = await replay("ethereum", transfer.sourceTxHash);
  expect(outline(sent.receipt, "ethereum")).toEqual(outline(sent.expected.receipt, "ethereum"));
  const log = sent.receipt.logs.find(({ topics }) => topics[0] === l1Abi.getEventTopic("TransferSentToL2")) as EventLog;
  const expectedLog = sent.expected.receipt.logs.find(({ topics }) => topics[0] === log.topics[0]) as EventLog;
  expect([log.topics, log.data]).toEqual([expectedLog.topics, expectedLog.data]);

  const before = await readBalance("arbitrum", recipient);
  const { args } = parseLog(l1Abi, log);
  const received = await distribute("ETH", "arbitrum", args.slice(1));
  const expected = findReceipt(transfer.completedTxHash).receipt;
  expect(outline(received, "arbitrum")).toEqual(outline(expected, "arbitrum"));
  const [completed, expectedCompleted] = [received.logs.at(-1), expected.logs.at(-1)];
  expect([completed?.topics, completed?.data]).toEqual([expectedCompleted?.topics, expectedCompleted?.data]);
  const gain = (await readBalance("arbitrum", recipient)) - before;
  expect(gain).toBeGreaterThan((oneEther * 12n) / 10n);
});

function findTransfer(token: string): Golden["transfers"][number] {
  const match = golden.transfers.find((transfer) => transfer.token === token);
  if (match === undefined) throw new Error(`no recorded transfer of ${token}`);
  return match;
}

function findReceipt(hash: string | undefined): GoldenReceipt {
  const match = golden.receipts[hash ?? ""];
  if (match === undefined) throw new Error(`no recorded receipt of ${hash}`);
  return match;
}

async function replay(
  slug: Slug,
  hash: string | undefined,
): Promise<{ receipt: TransactionReceipt; expected: GoldenReceipt }> {
  const expected = findReceipt(hash);
  const { from, to, input, value } = expected.transaction;
  const receipt = await chains.send(slug, { from, to, data: input, value: BigInt(value) });
  return { receipt, expected };
}

/** Returns address and first topic of each log, without logs of contracts that the SDK does not know (messengers). */
function outline(receipt: { readonly logs: readonly EventLog[] }, slug: Slug): string[] {
  const addressBook: Record<string, Record<string, Record<string, unknown>>> = sdkConfig.mainnet.addresses;
  const knownAddresses = new Set(
    Object.values(addressBook).flatMap((byChain) =>
      Object.values(byChain[slug] ?? {}).map((a) => String(a).toLowerCase()),
    ),
  );
  return receipt.logs
    .filter(({ address }) => knownAddresses.has(address.toLowerCase()))
    .map((log) => `${log.address.toLowerCase()} ${log.topics[0]}`);
}

function distribute(token: string, slug: Slug, values: readonly unknown[]): Promise<TransactionReceipt> {
  const data = l2Abi.encodeFunctionData("distribute", values as never);
  return chains.send(slug, { from: messenger, to: getContract(token, slug, "l2Bridge"), data });
}

async function readBalance(slug: Slug, account: string): Promise<bigint> {
  return BigInt((await chains.on(slug).rpc("eth_getBalance", [account, "latest"])) as string);
}
