import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { parseLogs } from "../../../../src/chain/json-rpc/parse-results.js";
import type { Log } from "../../../../src/chain/read/chain-reads.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../src/hop/transfer-events.js";
import { findPayout, getPayoutContracts, type PayoutContracts } from "../../../../src/transfers/details/payout.js";
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
function setup(
  token: string,
  slug: string,
  more: Partial<SentTransfer["event"]> = {},
  kind: SentTransfer["kind"] = "l2",
) {
  const base = createSentTransfer();
  const event = { ...base.event, amount: AMOUNT, bonderFee: FEE, amountOutMin: 900n, deadline: 5n, recipient, ...more };
  const sent = createSentTransfer({ kind, token, destination: getChain(slug), event });
  const contracts = getPayoutContracts(getNetwork("mainnet"), token, getChain(slug));
  const { bridge, hToken, ammWrapper, pool } = contracts;
  const mintFee = transfer(hToken, ZERO, bonder, FEE);
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
    completed: emitted(bridge, "TransferFromL1Completed", [
      recipient,
      AMOUNT,
      event.amountOutMin,
      event.deadline,
      event.relayer ?? ZERO,
      FEE,
    ]),
    mintFee,
    swap,
    failedSwap: [
      transfer(hToken, ZERO, bridge, AMOUNT - FEE),
      transfer(hToken, bridge, ammWrapper, AMOUNT - FEE),
      transfer(hToken, ammWrapper, recipient, AMOUNT - FEE),
    ],
    find: (events: readonly Emitted[], of: SentTransfer = sent, by: PayoutContracts = contracts) =>
      findPayout(of, toLogs(events), by),
  };
}

const got = (amount: bigint, token: string, isUnrequestedHToken = false) => ({
  isDelivered: true,
  payout: { amount, token, isUnrequestedHToken },
});

describe("a bond with a swap", () => {
  test("pays what the pool gives, after its event", () => {
    const { find, bonded, mintFee, swap } = setup("USDT", "arbitrum");
    expect(find([...swap(1n), bonded(), mintFee, ...swap(BOUGHT)])).toEqual(got(BOUGHT, "USDT"));
  });

  test("pays the coin of the chain, which leaves no Transfer to the recipient", () => {
    const { find, bonded, mintFee, swap } = setup("ETH", "arbitrum");
    expect(find([bonded(), mintFee, ...swap(BOUGHT).slice(0, -1)])).toEqual(got(BOUGHT, "ETH"));
  });

  test("pays hTokens when the swap fails", () => {
    const { find, bonded, mintFee, failedSwap } = setup("USDT", "arbitrum");
    expect(find([bonded(), mintFee, ...failedSwap])).toEqual(got(AMOUNT - FEE, "hUSDT", true));
  });

  test("of bridged USDC pays hUSDC when the swap fails", () => {
    const { find, bonded, failedSwap } = setup("USDC.e", "arbitrum");
    expect(find([bonded(), ...failedSwap])).toEqual(got(AMOUNT - FEE, "hUSDC", true));
  });

  test("is told apart from another bond of the same transaction", () => {
    const { find, bonded, swap, failedSwap, sent } = setup("USDT", "arbitrum");
    const other = repeatedByteHash("77");
    const events = [
      bonded(other),
      ...failedSwap,
      bonded(),
      ...swap(BOUGHT),
      bonded(repeatedByteHash("78")),
      ...swap(1n),
    ];
    expect(find(events)).toEqual(got(BOUGHT, "USDT"));
    expect(find(events, { ...sent, id: other })).toEqual(got(AMOUNT - FEE, "hUSDT", true));
  });

  test("does not count what the next bond of the same transaction pays", () => {
    const { find, bonded, mintFee, swap } = setup("USDT", "arbitrum");
    for (const between of [[], [mintFee]]) {
      const events = [bonded(), ...between, bonded(repeatedByteHash("78")), ...swap(BOUGHT)];
      expect(find(events)).toEqual({ isDelivered: true, payout: undefined });
    }
  });

  test.each([
    ["only a minimum", { deadline: 0n }],
    ["only a deadline", { amountOutMin: 0n }],
  ])("is one where the transfer has %s", (_, more) => {
    const { find, bonded, swap } = setup("USDT", "arbitrum", more);
    expect(find([bonded(), ...swap(BOUGHT)])).toEqual(got(BOUGHT, "USDT"));
  });

  test("does not take an approval for a payment", () => {
    const { find, bonded, contracts, swap } = setup("USDT", "arbitrum");
    const { topics, data } = erc20.encodeEventLog(erc20.getEvent("Approval"), [
      contracts.pool,
      contracts.ammWrapper,
      3n,
    ]);
    expect(find([bonded(), { address: contracts.token, topics, data }, ...swap(BOUGHT)])).toEqual(got(BOUGHT, "USDT"));
  });

  test("is found beside Transfer events of other standards", () => {
    const { find, bonded, swap } = setup("USDT", "arbitrum");
    const { topics, data } = transfer(stranger, recipient, recipient, 5n);
    const others = [
      { address: stranger, topics: [...topics, encodeTopic(5n)], data: "0x" },
      { address: stranger, topics: topics.slice(0, 2), data },
      { address: stranger, topics: topics.slice(0, 1), data },
      { address: stranger, topics, data: "0x" },
    ];
    expect(find([bonded(), ...others, ...swap(BOUGHT)])).toEqual(got(BOUGHT, "USDT"));
  });

  test("pays the first word of the event's data", () => {
    const { find, bonded, swap } = setup("USDT", "arbitrum");
    const events = swap(BOUGHT).map((event) => ({ ...event, data: `${event.data}${"11".repeat(32)}` }));
    expect(find([bonded(), ...events])).toEqual(got(BOUGHT, "USDT"));
  });

  test("does not count tokens that somebody else sends the recipient or the wrapper", () => {
    const { find, bonded, contracts } = setup("USDT", "arbitrum");
    const { token, hToken, ammWrapper } = contracts;
    const gifts = [
      transfer(token, stranger, recipient, 7n),
      transfer(token, stranger, ammWrapper, 7n),
      transfer(hToken, stranger, recipient, AMOUNT - FEE),
      transfer(stranger, ammWrapper, recipient, 7n),
    ];
    expect(find([bonded(), ...gifts])).toEqual({ isDelivered: true, payout: undefined });
  });
});

describe("a bond without a swap", () => {
  const noSwap = { amountOutMin: 0n, deadline: 0n };

  test("pays the hTokens that were asked for", () => {
    const { find, bonded, contracts, mintFee } = setup("USDT", "arbitrum", noSwap);
    expect(find([bonded(), transfer(contracts.hToken, ZERO, recipient, AMOUNT - FEE), mintFee])).toEqual(
      got(AMOUNT - FEE, "hUSDT"),
    );
  });

  test("does not take the bonder's fee for the payout where the bonder is the recipient", () => {
    const { find, bonded, contracts } = setup("USDT", "arbitrum", noSwap);
    const [fee, payout] = [FEE, AMOUNT - FEE].map((value) => transfer(contracts.hToken, ZERO, recipient, value));
    if (fee === undefined || payout === undefined) throw new Error("no events");
    expect(find([bonded(), fee, payout])).toEqual(got(AMOUNT - FEE, "hUSDT"));
  });

  test("pays the token itself where there is no pool", () => {
    const { find, bonded, contracts } = setup("HOP", "arbitrum");
    expect(find([bonded(), transfer(contracts.hToken, ZERO, recipient, AMOUNT - FEE)])).toEqual(
      got(AMOUNT - FEE, "HOP"),
    );
  });

  test("pays out of the bridge on L1", () => {
    const { find, bonded, contracts } = setup("USDT", "ethereum", noSwap);
    const { token, bridge } = contracts;
    expect(
      find([bonded(), transfer(token, bridge, recipient, AMOUNT - FEE), transfer(token, bridge, bonder, FEE)]),
    ).toEqual(got(AMOUNT - FEE, "USDT"));
  });

  test("on L1 is unknown without the bridge's own payment", () => {
    const { find, bonded, contracts } = setup("USDT", "ethereum", noSwap);
    const { token, bridge } = contracts;
    const others = [
      transfer(token, stranger, recipient, AMOUNT - FEE),
      transfer(token, bridge, recipient, AMOUNT - FEE - 1n),
    ];
    expect(find([bonded(), ...others])).toEqual({ isDelivered: true, payout: undefined });
  });

  test("pays ether on L1, without any log", () => {
    const { find, bonded } = setup("ETH", "ethereum", noSwap);
    expect(find([bonded()])).toEqual(got(AMOUNT - FEE, "ETH"));
  });
});

describe("a withdrawal", () => {
  test("pays the whole amount in hTokens, before its event", () => {
    const { find, withdrew, contracts, bonded, failedSwap } = setup("USDT", "arbitrum");
    const mint = transfer(contracts.hToken, ZERO, recipient, AMOUNT);
    expect(find([bonded(repeatedByteHash("77")), ...failedSwap, mint, withdrew])).toEqual(got(AMOUNT, "hUSDT", true));
  });

  test("pays the whole amount on L1", () => {
    const { find, withdrew } = setup("ETH", "ethereum");
    expect(find([withdrew])).toEqual(got(AMOUNT, "ETH"));
  });
});

describe("a completion from L1", () => {
  const fromL1 = (token = "USDT") => setup(token, "arbitrum", { relayer: bonder, transferId: undefined }, "l1");

  test("pays what the pool gives, before its event", () => {
    const { find, completed, mintFee, swap } = fromL1();
    expect(find([mintFee, ...swap(BOUGHT), completed, ...swap(1n)])).toEqual(got(BOUGHT, "USDT"));
  });

  test("pays hTokens when the swap fails", () => {
    const { find, completed, failedSwap } = fromL1();
    expect(find([...failedSwap, completed])).toEqual(got(AMOUNT - FEE, "hUSDT", true));
  });

  test("is recognized where the explorer does not know the relayer", () => {
    const { find, completed, swap, sent } = fromL1();
    const unknownRelayer = { ...sent, event: { ...sent.event, relayer: undefined } };
    expect(find([...swap(BOUGHT), completed], unknownRelayer)).toEqual(got(BOUGHT, "USDT"));
  });

  test("is unknown among equal ones that were paid differently", () => {
    const { find, completed, swap } = fromL1();
    expect(find([...swap(BOUGHT), completed, ...swap(BOUGHT - 1n), completed])).toEqual({
      isDelivered: true,
      payout: undefined,
    });
    expect(find([...swap(BOUGHT), completed, ...swap(BOUGHT), completed])).toEqual(got(BOUGHT, "USDT"));
  });

  test("is unknown among equal ones that were paid as much in different tokens", () => {
    const { find, completed, swap, failedSwap } = fromL1();
    expect(find([...swap(AMOUNT - FEE), completed, ...failedSwap, completed])).toEqual({
      isDelivered: true,
      payout: undefined,
    });
  });
});

describe("a CCTP transfer", () => {
  const event = { transferId: "12", amount: AMOUNT, amountOutMin: 0n, deadline: 0n };
  const cctp = () => {
    const { contracts, sent, find } = setup("USDC", "arbitrum", event, "cctp");
    const received = (nonce: bigint, domain: bigint): Emitted => ({
      address: contracts.messageTransmitter,
      topics: [EVENT_TOPICS.messageReceived, encodeTopic(stranger), encodeTopic(nonce)],
      data: encodeTopic(domain),
    });
    return { find, contracts, received, sent: { ...sent, id: "12" } };
  };

  test("is minted before its message counts as received", () => {
    const { find, contracts, received, sent } = cctp();
    const mint = (value: bigint): Emitted => transfer(contracts.token, ZERO, recipient, value);
    const events = [mint(1n), received(11n, 2n), mint(980n), received(12n, 2n), mint(2n), received(12n, 3n)];
    expect(find(events, sent)).toEqual(got(980n, "USDC"));
  });

  test("is not taken for another mint, or for tokens that somebody sends", () => {
    const { find, contracts, received, sent } = cctp();
    const events = [
      transfer(contracts.token, ZERO, recipient, 980n),
      transfer(contracts.token, ZERO, stranger, 1n),
      transfer(stranger, ZERO, recipient, 2n),
      transfer(contracts.token, stranger, recipient, 3n),
      received(12n, 2n),
    ];
    expect(find(events, sent)).toEqual(got(980n, "USDC"));
    expect(find(events.slice(1), sent)).toEqual({ isDelivered: true, payout: undefined });
  });
});

test("a transaction that did not deliver the transfer is recognized", () => {
  const { find, bonded, swap, sent } = setup("USDT", "arbitrum");
  expect(find([bonded(repeatedByteHash("77")), ...swap(BOUGHT)])).toEqual({ isDelivered: false, payout: undefined });
  const onOtherBridge = bonded();
  expect(find([{ ...onOtherBridge, address: stranger }], sent)).toEqual({ isDelivered: false, payout: undefined });
});

test("a transfer from an L2 is not taken for an equal one from L1, nor the other way round", () => {
  const { find, bonded, completed, swap, sent } = setup("USDT", "arbitrum");
  const none = { isDelivered: false, payout: undefined };
  expect(find([...swap(BOUGHT), completed], sent)).toEqual(none);
  expect(find([bonded(), ...swap(BOUGHT)], { ...sent, kind: "l1" })).toEqual(none);
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
