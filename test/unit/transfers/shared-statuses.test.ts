import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import { createSharedResolver, parseStatus, printStatus } from "../../../src/transfers/shared-statuses.js";
import type { LookupResult, TransferQuery } from "../../../src/transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../../src/transfers/status.js";
import {
  createChainAccess,
  createLookupContext,
  createSentTransfer,
  createStatus,
  getChain,
  repeatedByteHash,
} from "../../support/stubs/transfer-fixtures.js";

const mainnet = getNetwork("mainnet");
const final = createStatus();
const ID_QUERY: TransferQuery = { transferId: final.sent.id, transactionHash: undefined };
const HASH_QUERY: TransferQuery = { transferId: undefined, transactionHash: final.sent.transactionHash };

const hash = fc.stringMatching(/^0x[0-9a-f]{64}$/);
const address = fc.stringMatching(/^0x[0-9a-f]{40}$/);
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });

/** Any final status. Zero is a valid number of a block, and of a transfer over CCTP. */
const finalStatus: fc.Arbitrary<TransferStatus> = fc
  .record({
    kind: fc.constantFrom("l1", "l2", "cctp"),
    id: fc.oneof(hash, fc.constant("0")),
    token: fc.constantFrom("ETH", "USDC.e"),
    source: fc.constantFrom(getChain("ethereum"), getChain("optimism")),
    transactionHash: hash,
    blockNumber: fc.nat(),
    logIndex: fc.nat(),
    account: address,
    amounts: fc.array(uint256, { minLength: 4, maxLength: 4 }),
    relayer: maybe(address),
    delivery: fc.record({ transactionHash: hash, blockNumber: maybe(fc.nat()), bonder: maybe(address) }),
    deliveredAt: maybe(fc.nat()),
    otherTransferIds: fc.array(hash, { maxLength: 2 }),
    statusSource: fc.constantFrom("chain", "index", "explorer"),
    priceUsd: maybe(fc.constantFrom(0, 3_000.5)),
  })
  .map(({ amounts, relayer, delivery, deliveredAt, otherTransferIds, statusSource, priceUsd, ...sent }) => {
    const [amount = 0n, amountOutMin = 0n, deadline = 0n, bonderFee = 0n] = amounts;
    const transferId = sent.kind === "l1" ? undefined : sent.id;
    return createStatus({
      sent: {
        ...sent,
        event: { ...createSentTransfer().event, transferId, amount, amountOutMin, deadline, bonderFee, relayer },
      },
      delivery: { ...delivery, ...(deliveredAt !== undefined && { timestamp: deliveredAt }) },
      otherTransferIds,
      source: statusSource,
      priceUsd,
    });
  });

function setup({ status }: { readonly status: LookupResult } = { status: final }) {
  const texts = new Map<string, string>();
  const lookups: TransferQuery[] = [];
  const createReplica = () =>
    createSharedResolver(
      {
        async resolve(query) {
          lookups.push(query);
          return status;
        },
      },
      {
        async get(key) {
          const text = texts.get(key);
          return text === undefined ? undefined : { text, ageMs: 0 };
        },
        set: (key, text) => void texts.set(key, text),
      },
    );
  return { first: createReplica(), second: createReplica(), texts, lookups };
}

describe("a final status", () => {
  test.each([ID_QUERY, HASH_QUERY])("is looked up by one replica for all: %j", async (query) => {
    const { first, second, lookups } = setup();
    expect(await first.resolve(query, createLookupContext())).toBe(final);
    expect(await second.resolve(query, createLookupContext())).toEqual(final);
    expect(lookups).toHaveLength(1);
  });

  test("is read as it was, whatever it contains", () => {
    fc.assert(
      fc.property(finalStatus, (status) => {
        const parsed = parseStatus(printStatus(status), mainnet);
        expect(parsed).toEqual(status);
        expect(parsed?.sent.source).toBe(status.sent.source);
      }),
    );
  });
});

describe("nothing is shared", () => {
  test.each([
    ["a status that may change", createStatus({ delivery: undefined })],
    ["a status in a block that is not final", createStatus({ isFinal: false })],
    ["that a transfer does not exist", undefined],
  ])("of %s", async (_, status) => {
    const { first, texts } = setup({ status });
    expect(await first.resolve(ID_QUERY, createLookupContext())).toBe(status);
    expect(texts.size).toBe(0);
  });

  test("of lookups over a caller's own endpoint, which get nothing from others either", async () => {
    const { first, second, texts, lookups } = setup();
    const chains = createChainAccess([], ["optimism"]);
    await first.resolve(ID_QUERY, createLookupContext({ chains }));
    expect(texts.size).toBe(0);
    await first.resolve(ID_QUERY, createLookupContext());
    await second.resolve(ID_QUERY, createLookupContext({ chains }));
    expect(lookups).toHaveLength(3);
  });
});

describe("a text that is no status of the network", () => {
  const printed = printStatus(final);
  const change = (from: string, to: string): string => {
    expect(printed).toContain(from);
    return printed.replace(from, to);
  };

  test.each([
    ["garbage", () => "nonsense"],
    ["null", () => "null"],
    ["a list", () => "[]"],
    ["a chain of another network", () => change('"source":"optimism"', '"source":"sepolia"')],
    ["an amount that is not an integer", () => change('"amount":{"$bigint":"25', '"amount":{"$bigint":"x25')],
    ["a destination of another network", () => change('"destination":"arbitrum"', '"destination":"sepolia"')],
  ])("is not taken, but read from the sources: %s", async (_, text) => {
    const { first, texts, lookups } = setup();
    texts.set(`status mainnet  ${final.sent.id}`, text());
    expect(await first.resolve(ID_QUERY, createLookupContext())).toBe(final);
    expect(lookups).toHaveLength(1);
  });
});

test("a status is shared for its network, and for what identifies it, alone", async () => {
  const { first, second, lookups } = setup();
  await first.resolve(ID_QUERY, createLookupContext());
  const sameAsHash = { transferId: undefined, transactionHash: final.sent.id };
  const other = { transferId: undefined, transactionHash: repeatedByteHash("9a") };
  for (const query of [sameAsHash, other]) await second.resolve(query, createLookupContext());
  await second.resolve(ID_QUERY, createLookupContext({ network: getNetwork("goerli") }));
  expect(lookups).toHaveLength(4);
});
