import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { parseLogs } from "../../../../src/chain/json-rpc/parse-results.js";
import type { Log } from "../../../../src/chain/read/chain-reads.js";
import type { TransferKind } from "../../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../src/hop/transfer-events.js";
import { findPayout, getPayoutContracts } from "../../../../src/transfers/details/payout.js";
import type { SentTransfer } from "../../../../src/transfers/status.js";
import golden from "../../../golden/transfers.json" with { type: "json" };
import {
  createSentTransfer,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
  toLog,
} from "../../../support/stubs/transfer-fixtures.js";

// The logs of Hop's contracts in the order in which they emit them.

const ZERO = `0x${"0".repeat(40)}`;
const [recipient, bonder, stranger] = [repeatedByteAddress("d2"), repeatedByteAddress("e3"), repeatedByteAddress("ee")];
const bridgeAbi = new utils.Interface(L2Bridge.abi as never);
const erc20 = new utils.Interface([
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)",
]);
const [AMOUNT, FEE, BOUGHT] = [1_000n, 10n, 985n];

interface Emitted {
  readonly address: string | undefined;
  readonly topics: readonly string[];
  readonly data: string;
}

const toLogs = (events: readonly Emitted[]): readonly Log[] =>
  events.map(({ address = ZERO, topics, data }, index) =>
    toLog({ address, topics, data, transactionHash: repeatedByteHash("3c") }, 2_000, index),
  );

const transfer = (token: string | undefined, from = stranger, to = stranger, value = 0n): Emitted => ({
  address: token,
  ...erc20.encodeEventLog(erc20.getEvent("Transfer"), [from, to, value]),
});

const emitted = (address: string | undefined, name: string, values: readonly unknown[]): Emitted => ({
  address,
  ...bridgeAbi.encodeEventLog(bridgeAbi.getEvent(name), [...values]),
});

/** A transfer of a token to a chain, its contracts there and the events of its delivery. */
function setup(token: string, slug: string, more: Partial<SentTransfer["event"]> = {}, kind: TransferKind = "l2") {
  const base = createSentTransfer();
  const event = { ...base.event, amount: AMOUNT, bonderFee: FEE, amountOutMin: 900n, deadline: 5n, recipient, ...more };
  const sent = createSentTransfer({ kind, token, destination: getChain(slug), event });
  const contracts = getPayoutContracts(getNetwork("mainnet"), token, getChain(slug));
  const { bridge, hToken, ammWrapper, pool } = contracts;
  const mintFee = transfer(hToken, ZERO, bonder, FEE);
  const completion = [recipient, AMOUNT, event.amountOutMin, event.deadline, event.relayer ?? ZERO, FEE];
  const swap = (buys: bigint, to = recipient): readonly Emitted[] => [
    transfer(hToken, ZERO, bridge, AMOUNT - FEE),
    transfer(hToken, bridge, ammWrapper, AMOUNT - FEE),
    transfer(hToken, ammWrapper, pool, AMOUNT - FEE),
    transfer(contracts.token, pool, ammWrapper, buys),
    transfer(contracts.token, ammWrapper, to, buys),
  ];
  return {
    sent,
    contracts,
    bonded: (id = sent.id) => emitted(bridge, "WithdrawalBonded", [id, AMOUNT]),
    withdrew: emitted(bridge, "Withdrew", [sent.id, recipient, AMOUNT, repeatedByteHash("0e")]),
    completed: emitted(bridge, "TransferFromL1Completed", completion),
    mintFee,
    swap,
    failedSwap: [
      transfer(hToken, ZERO, bridge, AMOUNT - FEE),
      transfer(hToken, bridge, ammWrapper, AMOUNT - FEE),
      transfer(hToken, ammWrapper, recipient, AMOUNT - FEE),
    ],
  };
}

const got = (amount: bigint, token: string, isUnrequestedHToken = false) => ({
  isDelivered: true,
  payout: { amount, token, isUnrequestedHToken },
});

const notPaid = { isDelivered: true, payout: undefined };
const notDelivered = { isDelivered: false, payout: undefined };
const noSwap = { amountOutMin: 0n, deadline: 0n };
const [otherId, thirdId] = [repeatedByteHash("77"), repeatedByteHash("78")];
const usdt = setup("USDT", "arbitrum");
const { bonded, mintFee, swap, failedSwap, withdrew } = usdt;
const { token, hToken, pool, ammWrapper } = usdt.contracts;
const sentAs = (parts: typeof usdt, more: Partial<SentTransfer>) => ({ ...parts, sent: { ...parts.sent, ...more } });
const [bought, asHUsdt] = [got(BOUGHT, "USDT"), got(AMOUNT - FEE, "hUSDT", true)];
const askedHUsdt = got(AMOUNT - FEE, "hUSDT");
const eth = setup("ETH", "arbitrum");
const bridgedUsdc = setup("USDC.e", "arbitrum");
const withoutSwap = setup("USDT", "arbitrum", noSwap);
const minimumAlone = setup("USDT", "arbitrum", { deadline: 0n });
const deadlineAlone = setup("USDT", "arbitrum", { amountOutMin: 0n });
const hop = setup("HOP", "arbitrum");
const payInHToken = (parts: typeof usdt, amount = AMOUNT - FEE) =>
  transfer(parts.contracts.hToken, ZERO, recipient, amount);
const [usdtOnL1, ethOnL1] = [setup("USDT", "ethereum", noSwap), setup("ETH", "ethereum", noSwap)];
const { bridge: bridgeOnL1, token: usdtTokenOnL1 } = usdtOnL1.contracts;
const payOnL1 = (value: bigint, from = bridgeOnL1, to = recipient) => transfer(usdtTokenOnL1, from, to, value);
const fromL1 = setup("USDT", "arbitrum", { relayer: bonder, transferId: undefined }, "l1");
const { completed } = fromL1;
const boughtTwice = [...swap(BOUGHT), completed, ...swap(BOUGHT), completed];
const boughtLess = [...swap(BOUGHT), completed, ...swap(BOUGHT - 1n), completed];
const boughtAsMuch = [...swap(AMOUNT - FEE), completed, ...failedSwap, completed];
const withoutRelayer = sentAs(fromL1, { event: { ...fromL1.sent.event, relayer: undefined } });
const approval = { address: token, ...erc20.encodeEventLog(erc20.getEvent("Approval"), [pool, ammWrapper, 3n]) };
const { topics: ofTransfer, data: value } = transfer(stranger, recipient, recipient, 5n);
const ofOtherStandards = [
  { address: stranger, topics: [...ofTransfer, encodeTopic(5n)], data: "0x" },
  { address: stranger, topics: ofTransfer.slice(0, 2), data: value },
  { address: stranger, topics: ofTransfer.slice(0, 1), data: value },
  { address: stranger, topics: ofTransfer, data: "0x" },
];
const swapWithLongerData = swap(BOUGHT).map((event) => ({ ...event, data: `${event.data}${"11".repeat(32)}` }));
const gifts = [
  transfer(token, stranger, recipient, 7n),
  transfer(token, stranger, ammWrapper, 7n),
  transfer(hToken, stranger, recipient, AMOUNT - FEE),
  transfer(stranger, ammWrapper, recipient, 7n),
];
const bothBonded = [bonded(otherId), ...failedSwap, bonded(), ...swap(BOUGHT), bonded(thirdId), ...swap(1n)];
const withdrawnAfterBond = [bonded(otherId), ...failedSwap, payInHToken(usdt, AMOUNT), withdrew];

test.each<
  [string, Pick<typeof usdt, "sent" | "contracts">, readonly Emitted[], ReturnType<typeof got> | typeof notPaid]
>([
  ["a bond: what the pool gives after it", usdt, [...swap(1n), bonded(), mintFee, ...swap(BOUGHT)], bought],
  [
    "a bond: the coin of the chain, which leaves no Transfer to the recipient",
    eth,
    [eth.bonded(), eth.mintFee, ...eth.swap(BOUGHT).slice(0, -1)],
    got(BOUGHT, "ETH"),
  ],
  ["a bond: hTokens when the swap fails", usdt, [bonded(), mintFee, ...failedSwap], asHUsdt],
  [
    "a bond of bridged USDC: hUSDC when the swap fails",
    bridgedUsdc,
    [bridgedUsdc.bonded(), ...bridgedUsdc.failedSwap],
    got(AMOUNT - FEE, "hUSDC", true),
  ],
  ["the second bond of a transaction", usdt, bothBonded, bought],
  ["the first bond of a transaction", sentAs(usdt, { id: otherId }), bothBonded, asHUsdt],
  ["a bond: not what the next one pays", usdt, [bonded(), bonded(thirdId), ...swap(BOUGHT)], notPaid],
  ["a bond: not what follows its fee alone", usdt, [bonded(), mintFee, bonded(thirdId), ...swap(BOUGHT)], notPaid],
  ["a transfer that has only a minimum", minimumAlone, [bonded(), ...swap(BOUGHT)], bought],
  ["a transfer that has only a deadline", deadlineAlone, [bonded(), ...swap(BOUGHT)], bought],
  ["a bond: not an approval", usdt, [bonded(), approval, ...swap(BOUGHT)], bought],
  ["a bond beside Transfer events of other standards", usdt, [bonded(), ...ofOtherStandards, ...swap(BOUGHT)], bought],
  ["a bond: the first word of the event's data", usdt, [bonded(), ...swapWithLongerData], bought],
  ["a bond: not what somebody else sends the recipient or the wrapper", usdt, [bonded(), ...gifts], notPaid],
  ["a bond without a swap: the requested hTokens", withoutSwap, [bonded(), payInHToken(usdt), mintFee], askedHUsdt],
  [
    "a bond without a swap: not the fee of a bonder who is the recipient",
    withoutSwap,
    [bonded(), payInHToken(usdt, FEE), payInHToken(usdt)],
    askedHUsdt,
  ],
  ["the token itself where there is no pool", hop, [hop.bonded(), payInHToken(hop)], got(AMOUNT - FEE, "HOP")],
  [
    "a bond on L1: out of the bridge",
    usdtOnL1,
    [usdtOnL1.bonded(), payOnL1(AMOUNT - FEE), payOnL1(FEE, bridgeOnL1, bonder)],
    got(AMOUNT - FEE, "USDT"),
  ],
  [
    "a bond on L1: unknown without the bridge's own payment",
    usdtOnL1,
    [usdtOnL1.bonded(), payOnL1(AMOUNT - FEE, stranger), payOnL1(AMOUNT - FEE - 1n)],
    notPaid,
  ],
  ["a bond on L1: ether, without any log", ethOnL1, [ethOnL1.bonded()], got(AMOUNT - FEE, "ETH")],
  ["a withdrawal: the whole amount in hTokens, before its event", usdt, withdrawnAfterBond, got(AMOUNT, "hUSDT", true)],
  ["a withdrawal on L1: the whole amount", ethOnL1, [ethOnL1.withdrew], got(AMOUNT, "ETH")],
  ["a completion: what the pool gives before it", fromL1, [mintFee, ...swap(BOUGHT), completed, ...swap(1n)], bought],
  ["a completion: hTokens when the swap fails", fromL1, [...failedSwap, completed], asHUsdt],
  ["a completion whose relayer the explorer does not know", withoutRelayer, [...swap(BOUGHT), completed], bought],
  ["equal completions that were paid equally", fromL1, boughtTwice, bought],
  ["equal completions that were paid differently: unknown", fromL1, boughtLess, notPaid],
  ["equal completions that were paid as much in different tokens: unknown", fromL1, boughtAsMuch, notPaid],
  ["none of another transfer", usdt, [bonded(otherId), ...swap(BOUGHT)], notDelivered],
  ["none by another contract", usdt, [{ ...bonded(), address: stranger }], notDelivered],
  ["none of a completion for a transfer from an L2", usdt, [...swap(BOUGHT), usdt.completed], notDelivered],
  ["none of a bond for a transfer from L1", sentAs(usdt, { kind: "l1" }), [bonded(), ...swap(BOUGHT)], notDelivered],
])("finds the payout of %s", (_, { sent, contracts }, events, expected) => {
  expect(findPayout(sent, toLogs(events), contracts)).toEqual(expected);
});

describe("a CCTP transfer", () => {
  const { contracts, sent: burned } = setup("USDC", "arbitrum", { transferId: "12", ...noSwap }, "cctp");
  const sent = { ...burned, id: "12" };
  const mint = (amount: bigint): Emitted => transfer(contracts.token, ZERO, recipient, amount);
  const received = (nonce: bigint, domain: bigint): Emitted => ({
    address: contracts.messageTransmitter,
    topics: [EVENT_TOPICS.messageReceived, encodeTopic(stranger), encodeTopic(nonce)],
    data: encodeTopic(domain),
  });
  const otherEvents = [
    transfer(contracts.token, ZERO, stranger, 1n),
    transfer(stranger, ZERO, recipient, 2n),
    transfer(contracts.token, stranger, recipient, 3n),
    received(12n, 2n),
  ];

  test.each([
    [
      "is minted before its message counts as received",
      [mint(1n), received(11n, 2n), mint(980n), received(12n, 2n), mint(2n), received(12n, 3n)],
      got(980n, "USDC"),
    ],
    [
      "is not taken for another mint, or for tokens that somebody sends",
      [mint(980n), ...otherEvents],
      got(980n, "USDC"),
    ],
    ["is not paid by those alone", otherEvents, notPaid],
  ])("%s", (_, events, expected) => {
    expect(findPayout(sent, toLogs(events), contracts)).toEqual(expected);
  });
});

// Receipts of the deployed contracts.
test.each<[string, string, bigint, Partial<SentTransfer["event"]>]>([
  ["HOP", "bondTxHash", 4_980_000_000_000_000_000_000n, { amountOutMin: 0n, deadline: 0n }],
  ["USDT", "bondTxHash", 494_544_412n, {}],
  ["ETH", "completedTxHash", 1_250_567_042_930_957_446n, {}],
])("a recorded delivery of %s has its payout", (token, hashName, amount, more) => {
  const recorded = golden.transfers.find((each) => each.token === token);
  if (recorded === undefined) throw new Error(`no recorded transfer of ${token}`);
  const hash = (recorded as unknown as Record<string, string>)[hashName] ?? "";
  const { receipt } = (golden.receipts as Record<string, { receipt: { logs: unknown } }>)[hash] ?? {};
  const kind = recorded.transferId === null ? "l1" : "l2";
  const event = {
    ...createSentTransfer().event,
    recipient: recorded.recipient.toLowerCase(),
    relayer: recorded.relayer?.toLowerCase(),
    amount: BigInt(recorded.amount),
    bonderFee: BigInt(recorded.bonderFee),
    amountOutMin: BigInt(recorded.amountOutMin),
    deadline: BigInt(recorded.deadline),
    ...more,
  };
  const destination = getChain(recorded.destinationChain);
  const sent = createSentTransfer({ kind, id: recorded.transferId ?? "", token, destination, event });
  const logs = parseLogs({ slug: destination.slug } as ChainClient, receipt?.logs);
  expect(findPayout(sent, logs, getPayoutContracts(getNetwork("mainnet"), token, destination))).toEqual(
    got(amount, token),
  );
});
