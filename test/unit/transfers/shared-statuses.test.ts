import { describe, expect, test, vi } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import { createSharedResolver, parseFinalStatus, printStatus } from "../../../src/transfers/shared-statuses.js";
import type { LookupResult, TransferQuery } from "../../../src/transfers/sources/transfer-source.js";
import {
  createChainAccess,
  createLookupContext,
  createStatus,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
} from "../../support/stubs/transfer-fixtures.js";

const mainnet = getNetwork("mainnet");
const final = createStatus();
const ID_QUERY: TransferQuery = { transferId: final.sent.id, transactionHash: undefined };
const HASH_QUERY: TransferQuery = { transferId: undefined, transactionHash: final.sent.transactionHash };

function setup({ status }: { readonly status: LookupResult } = { status: final }) {
  const texts = new Map<string, string>();
  const onRefused = vi.fn();
  const lookups: TransferQuery[] = [];
  const createReplica = () =>
    createSharedResolver(
      {
        async resolve(query) {
          lookups.push(query);
          return status;
        },
      },
      { get: async (key) => texts.get(key), set: (key, text) => void texts.set(key, text) },
      onRefused,
    );
  return { first: createReplica(), second: createReplica(), texts, onRefused, lookups };
}

describe("a final status", () => {
  test.each([ID_QUERY, HASH_QUERY])("is looked up by one replica for all: %j", async (query) => {
    const { first, second, lookups } = setup();
    expect(await first.resolve(query, createLookupContext())).toBe(final);
    expect(await second.resolve(query, createLookupContext())).toEqual(final);
    expect(lookups).toHaveLength(1);
  });

  test.each([
    ["l1", createStatus({ sent: { kind: "l1", id: repeatedByteHash("2b"), source: getChain("ethereum") } })],
    ["of another source and with all that may be known", createStatus({ source: "explorer", priceUsd: 3_000.5 })],
    ["with other transfers", createStatus({ otherTransferIds: [repeatedByteHash("4d")] })],
  ])("is read as it was: %s", (_, status) => {
    const query = { transferId: status.sent.id, transactionHash: undefined };
    expect(parseFinalStatus(printStatus(status), mainnet, query)).toEqual(status);
  });

  test("is also found by the delivering transaction", () => {
    const query = { transferId: undefined, transactionHash: final.delivery?.transactionHash };
    expect(parseFinalStatus(printStatus(final), mainnet, query)).toEqual(final);
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

describe("a text that is not the final status of the transfer", () => {
  const printed = printStatus(final);
  const change = (from: string, to: string): string => {
    expect(printed).toContain(from);
    return printed.replace(from, to);
  };

  test.each([
    ["garbage", () => "nonsense"],
    ["null", () => "null"],
    ["a list", () => "[]"],
    [
      "a status of another transfer",
      () =>
        printStatus(
          createStatus({
            sent: { id: repeatedByteHash("9a"), event: { ...final.sent.event, transferId: repeatedByteHash("9a") } },
          }),
        ),
    ],
    ["a status that may change", () => printStatus(createStatus({ delivery: undefined }))],
    ["a status that is not final", () => change('"isFinal":true', '"isFinal":false')],
    ["a chain of another network", () => change('"source":"optimism"', '"source":"sepolia"')],
    ["an unknown token", () => change('"token":"ETH"', '"token":"__proto__"')],
    ["an amount that is not an integer", () => change('"amount":"25', '"amount":"x25')],
    ["a hash that is none", () => change(repeatedByteHash("3c"), "0x3c")],
    ["an address that is none", () => change(repeatedByteAddress("d2"), "<script>")],
    ["a block before the first", () => change('"blockNumber":1000', '"blockNumber":-1')],
    ["a time that is none", () => change('"timestamp":1700000000', '"timestamp":null')],
    ["an unknown source", () => change('"source":"chain"', '"source":"redis"')],
  ])("is refused and read from the sources: %s", async (_, text) => {
    const { first, texts, onRefused, lookups } = setup();
    texts.set(`mainnet::${final.sent.id}`, text());
    expect(await first.resolve(ID_QUERY, createLookupContext())).toBe(final);
    expect(lookups).toHaveLength(1);
    expect(onRefused).toHaveBeenCalledOnce();
  });
});
