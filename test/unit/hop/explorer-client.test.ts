import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ExplorerClient } from "../../../src/hop/explorer-client.js";
import {
  createExplorerRecord,
  type ExplorerMode,
  type ExplorerRecordJson,
  startExplorerStub,
} from "../../support/stubs/explorer-stub.js";

async function setup(
  records: readonly ExplorerRecordJson[] = [createExplorerRecord()],
  mode: ExplorerMode = "healthy",
) {
  const stub = await startExplorerStub(records);
  stub.mode = mode;
  let time = 0;
  const explorer = new ExplorerClient(stub.url, () => time);
  onTestFinished(() => explorer.close());
  onTestFinished(stub.close);
  const { signal } = new AbortController();
  const find = (query: unknown = transferId) => explorer.findTransfers(String(query), signal);
  return { stub, explorer, find, pass: (ms: number) => (time += ms) };
}

type Setup = Awaited<ReturnType<typeof setup>>;

const { transferId, transactionHash, bondTransactionHash } = createExplorerRecord();
const hash = (byte: string): string => `0x${byte.repeat(32)}`;
const address = (byte: string): string => `0x${byte.repeat(20)}`;
const unusable = { reason: "UPSTREAM_UNAVAILABLE", message: "the explorer returned no usable response" };
const coolingDown = {
  reason: "UPSTREAM_UNAVAILABLE",
  message: "the explorer is in cooldown after repeated failures",
};

/** Returns what is parsed from one record, requested by its transaction hash. */
async function readRecord(others: ExplorerRecordJson) {
  const { find } = await setup([createExplorerRecord(others)], "foreign");
  return find(String(others.transactionHash ?? transactionHash).toLowerCase());
}

describe("an explorer record", () => {
  test("is parsed with all its fields", async () => {
    const { find, stub } = await setup();
    expect(await find()).toEqual([
      {
        kind: "l2",
        id: transferId,
        token: "DAI",
        source: expect.objectContaining({ slug: "optimism" }),
        destination: expect.objectContaining({ slug: "arbitrum" }),
        transactionHash,
        timestamp: 1661554612,
        account: address("c1"),
        event: {
          transferId,
          destinationChainId: 42161,
          recipient: address("d2"),
          amount: 2_500_000_000_000_000_000n,
          amountOutMin: 2_490_000_000_000_000_000n,
          deadline: 1662159408n,
          bonderFee: 250_000_000_000_000_000n,
          relayer: undefined,
        },
        isReceived: true,
        bondTransactionHash,
        bonder: address("e3"),
        priceUsd: 1.002,
      },
    ]);
    expect(stub.queries).toEqual([transferId]);
  });

  test.each([transferId, transactionHash, bondTransactionHash])("is found by %s", async (query) => {
    const { find } = await setup();
    expect(await find(query)).toMatchObject([{ id: transferId }]);
  });

  test("is absent where the explorer has none", async () => {
    const { find } = await setup();
    expect(await find(hash("99"))).toEqual([]);
  });

  const pending = { bonded: false, bondTransactionHash: "", bonderAddress: null, bondTimestamp: 0 };
  const fromL1 = { sourceChainId: 1, sourceChainSlug: "ethereum" };
  const receivedOnL1 = { destinationChainId: 1, destinationChainSlug: "ethereum" };
  const toL1 = { ...pending, ...receivedOnL1 };
  const toOptimism = { destinationChainId: 10, destinationChainSlug: "optimism" };
  const fromArbitrum = { sourceChainId: 42161, sourceChainSlug: "arbitrum" };
  const cctp = { token: "USDC", transferId: "123" };
  test.each<[string, ExplorerRecordJson, object]>([
    ["numbers as strings", { sourceChainId: "10", timestamp: "7", deadline: "7", bonded: "1" }, { timestamp: 7 }],
    ["strings as numbers", { amount: 12, amountOutMin: 3, bonded: 1 }, { event: { amount: 12n, amountOutMin: 3n } }],
    ["a flag as a word", { bonded: "True" }, { isReceived: true }],
    ["an upper-case id", { transferId: hash("1A") }, { id: hash("1a") }],
    ["an upper-case address", { accountAddress: address("C1") }, { account: address("c1") }],
    ["no slugs", { sourceChainSlug: null, destinationChainSlug: undefined }, { source: { chainId: 10 } }],
    ["no chain ids", { sourceChainId: "", destinationChainId: null }, { destination: { chainId: 42161 } }],
    ["an alias of a chain", { sourceChainId: 100, sourceChainSlug: "xdai" }, { source: { slug: "gnosis" } }],
    ["an alias of a token", { token: "wxdai" }, { token: "DAI" }],
    [
      "a bond without its hash",
      { bondTransactionHash: null, bonderAddress: "" },
      { isReceived: true, bonder: undefined },
    ],
    ["no bond", pending, { isReceived: false, bondTransactionHash: undefined, bonder: undefined }],
    ["no bond fields", { ...pending, bonded: null, bondTransactionHash: undefined }, { isReceived: false }],
    [
      "no amountOutMin, deadline and bonderFee",
      { amountOutMin: null, deadline: "", bonderFee: undefined },
      { event: { amountOutMin: 0n, deadline: 0n, bonderFee: 0n } },
    ],
    ["amountOutMin but no deadline to L1", { ...toL1, deadline: null }, { isReceived: false }],
    ["no bond, amountOutMin and deadline", { ...pending, amountOutMin: null, deadline: null }, { isReceived: false }],
    ["the largest amount", { amount: String(2n ** 256n - 1n), amountUsd: 0 }, { event: { amount: 2n ** 256n - 1n } }],
    ["no token price but an amount in USD", { tokenPriceUsd: null }, { priceUsd: 2.505 / 2.5 }],
    ["a price as a string", { tokenPriceUsd: "1.5" }, { priceUsd: 1.5 }],
    ["an invalid price", { tokenPriceUsd: 0, amountUsd: "2.5" }, { priceUsd: 1 }],
    ["no price", { tokenPriceUsd: "", amountUsd: "" }, { priceUsd: undefined }],
    ["invalid prices only", { tokenPriceUsd: -1, amountUsd: "1e999" }, { priceUsd: undefined }],
    ["prices that are no numbers", { tokenPriceUsd: "NaN", amountUsd: [2.5] }, { priceUsd: undefined }],
    ["a price just below the limit", { tokenPriceUsd: 999_999_999 }, { priceUsd: 999_999_999 }],
    ["a price of a billion dollars", { tokenPriceUsd: 1e9, amountUsd: 2.5 }, { priceUsd: 1 }],
    ["prices above a billion dollars only", { tokenPriceUsd: "1e30", amountUsd: 1e31 }, { priceUsd: undefined }],
    ["an amount of 0 and an amount in USD", { tokenPriceUsd: 0, amount: "0" }, { priceUsd: undefined }],
    ["bridged USDC", { token: "USDC" }, { kind: "l2", token: "USDC.e" }],
    ["bridged USDC as USDC.e", { token: "USDC.e" }, { kind: "l2", token: "USDC.e" }],
    ["CCTP", { ...cctp, amountOutMin: null, deadline: 0 }, { kind: "cctp", id: "123", token: "USDC" }],
    ["CCTP as a number", { token: "USDC.e", transferId: 123 }, { kind: "cctp", id: "123", token: "USDC" }],
    [
      "a transfer from L1",
      { ...fromL1, transferId: transactionHash },
      { kind: "l1", event: { transferId: undefined } },
    ],
    [
      "an id with a suffix from L1",
      { ...fromL1, transferId: `${hash("1a")}2A` },
      { kind: "l1", id: `${hash("1a")}2a` },
    ],
    ["an id with a numeric suffix from L1", { ...fromL1, transferId: `${transactionHash}-3` }, { kind: "l1" }],
    ["a transfer to L1 without a swap", { ...toL1, amountOutMin: 0, deadline: 0 }, { isReceived: false }],
    ["an unbondable transfer", { ...toL1, amountOutMin: null, unbondable: true }, { event: { deadline: 1662159408n } }],
    ["a delivery on L1 without a swap", { ...receivedOnL1, amountOutMin: null, deadline: null }, { isReceived: true }],
  ])("is accepted with %s", async (_, others, expected) => {
    const [record, ...more] = await readRecord(others);
    expect(record).toMatchObject(expected);
    expect(more).toEqual([]);
  });

  test.each<[string, ExplorerRecordJson]>([
    ["no token", { token: "" }],
    ["no id", { transferId: null }],
    ["neither token nor id, as for a hash that is not indexed", { token: "", transferId: "", amount: 0 }],
    ["an unknown token", { token: "DOGE" }],
    ["a token that its source does not have", { token: "rETH", sourceChainId: 137, sourceChainSlug: "polygon" }],
    ["a token that its destination does not have", { token: "MAGIC", ...fromArbitrum, ...toOptimism }],
    ["a short id", { transferId: "0x1a" }],
    ["a long id from L2", { transferId: `${hash("1a")}00` }],
    ["a short id from L1", { ...fromL1, transferId: "0x1a" }],
    ["an id that is not hex", { transferId: `0x${"zz".repeat(32)}` }],
    ["a nonce beyond 64 bits", { token: "USDC", transferId: String(2n ** 64n) }],
    ["a CCTP nonce of another token", { transferId: "123" }],
    ["a CCTP nonce from a chain without CCTP", { ...cctp, sourceChainId: 100, sourceChainSlug: "gnosis" }],
    ["a CCTP nonce to a chain without CCTP", { ...cctp, destinationChainId: 100, destinationChainSlug: "gnosis" }],
    ["an unknown chain", { sourceChainId: 56, sourceChainSlug: null }],
    ["an unknown slug", { destinationChainId: null, destinationChainSlug: "bsc" }],
    ["no chain", { sourceChainId: null, sourceChainSlug: "" }],
    ["an id and a slug of different chains", { sourceChainId: 10, sourceChainSlug: "polygon" }],
    ["a known chain with an unknown slug", { sourceChainId: 10, sourceChainSlug: "bsc" }],
    ["the same source and destination", toOptimism],
    ["a negative amount", { amount: "-1" }],
    ["an amount with a fraction", { amount: 1.5 }],
    ["an amount that a double does not represent", { amount: 2e18 }],
    ["an amount with a leading zero", { amount: "012" }],
    ["an amount in hex", { amount: "0x10" }],
    ["an amount beyond 256 bits", { amount: String(2n ** 256n) }],
    ["an amount as an object", { amount: { type: "BigNumber", hex: "0x10" } }],
    ["no amount", { amount: null }],
    ["an invalid fee", { bonderFee: "free" }],
    ["an invalid deadline", { deadline: 1.157920892373162e77 }],
    ["an invalid amountOutMin", { amountOutMin: true }],
    ["no timestamp", { timestamp: null }],
    ["timestamp 0", { timestamp: 0 }],
    ["a timestamp in milliseconds", { timestamp: 1661554612000 }],
    ["an invalid account", { accountAddress: hash("c1") }],
    ["no account", { accountAddress: "" }],
    ["no recipient", { recipientAddress: null }],
    ["an invalid bond hash", { bondTransactionHash: address("3c") }],
    ["an invalid bonder", { bonderAddress: "hop.eth" }],
    ["an invalid flag", { bonded: "maybe" }],
    ["a flag of 2", { bonded: 2 }],
    ["a bond hash but bonded=false", { bonded: false }],
    ["a bond hash but no bonded flag", { bonded: null, bonderAddress: null }],
    ["a bonder but bonded=false", { bonded: false, bondTransactionHash: null }],
    ["no amountOutMin and deadline 0 to L1", { ...toL1, amountOutMin: null, deadline: 0 }],
    ["no deadline to L1", { ...toL1, amountOutMin: "0", deadline: null }],
    ["unbondable without a swap", { ...toL1, amountOutMin: "0", deadline: 0, unbondable: true }],
    ["unbondable to an L2", { unbondable: 1 }],
    ["unbondable over CCTP", { ...toL1, ...cctp, unbondable: true }],
    ["unbondable from L1", { ...fromL1, transferId: transactionHash, unbondable: "true" }],
  ])("is dropped with %s", async (_, others) => {
    expect(await readRecord(others)).toEqual([]);
  });

  test.each([[null], ["text"], [7], [[]], [[createExplorerRecord()]]])("is dropped if it is %j", async (json) => {
    const { find } = await setup([], { status: 200, body: { status: "ok", data: [json, createExplorerRecord()] } });
    expect(await find()).toHaveLength(1);
  });

  test("is dropped with an invalid transaction hash", async () => {
    const { find } = await setup([createExplorerRecord({ transactionHash: "0x2b" })]);
    expect(await find()).toEqual([]);
  });
});

describe("several records", () => {
  test("are dropped if they do not match the query", async () => {
    const foreign = createExplorerRecord({
      transferId: hash("77"),
      transactionHash: hash("78"),
      bondTransactionHash: hash("79"),
    });
    const { find } = await setup([foreign, createExplorerRecord()], "foreign");
    expect(await find()).toMatchObject([{ id: transferId }]);
    expect(await find(hash("70"))).toEqual([]);
  });

  test("are sorted by id", async () => {
    const ids = [hash("44"), hash("11"), hash("9f")];
    const { find } = await setup(ids.map((id) => createExplorerRecord({ transferId: id })));
    expect((await find(transactionHash)).map(({ id }) => id)).toEqual([hash("11"), hash("44"), hash("9f")]);
    const nonces = [123, 9, 45].map((nonce) => createExplorerRecord({ token: "USDC", transferId: nonce }));
    const cctp = await setup(nonces);
    expect((await cctp.find(transactionHash)).map(({ id }) => id)).toEqual(["9", "45", "123"]);
  });

  test("are deduplicated", async () => {
    const { find } = await setup([
      createExplorerRecord(),
      createExplorerRecord({ amount: "2500000000000000000", bonded: 1 }),
    ]);
    expect(await find()).toHaveLength(1);
  });

  test.each<[string, ExplorerRecordJson]>([
    ["of one transfer with two amounts", { amount: "1" }],
    ["of one transfer with two states", { bonded: false, bondTransactionHash: null, bonderAddress: null }],
    ["of one transfer from two chains", { sourceChainId: 137, sourceChainSlug: null }],
    ["of one transfer in two transactions", { sourceChainId: 137, sourceChainSlug: null, transactionHash: hash("44") }],
    ["of one transaction from two chains", { transferId: hash("44"), sourceChainId: 137, sourceChainSlug: null }],
    ["of one transaction from two accounts", { transferId: hash("44"), accountAddress: address("44") }],
    ["of one transaction at two times", { transferId: hash("44"), timestamp: 1661554613 }],
  ])("are dropped if they contradict each other: %s", async (_, others) => {
    const unrelated = createExplorerRecord({ transferId: hash("55"), transactionHash: hash("66") });
    const { find } = await setup([createExplorerRecord(), createExplorerRecord(others), unrelated], "foreign");
    expect(await find(transactionHash)).toEqual([]);
    expect(await find(bondTransactionHash)).toMatchObject([{ id: hash("55") }]);
  });

  test("with the same CCTP nonce on several chains do not contradict each other", async () => {
    const cctp = createExplorerRecord({ token: "USDC", transferId: "5" });
    const other = { ...cctp, sourceChainId: 137, sourceChainSlug: null, transactionHash: hash("66") };
    const { find } = await setup([cctp, other]);
    expect(await find("5")).toHaveLength(2);
  });
});

describe("a failing explorer", () => {
  test.each<[string, ExplorerMode]>([
    ["is down", "down"],
    ["returns HTML", "html"],
    ["returns an error with status 200", "error"],
    ["returns too many bytes", "endless"],
    ["returns an error status in the body", { status: 200, body: { status: "error", data: [] } }],
    [
      "returns an object instead of a list",
      { status: 200, body: { status: "ok", data: { 0: createExplorerRecord() } } },
    ],
    ["returns null", { status: 200, body: null }],
    ["returns a bare list", { status: 200, body: [createExplorerRecord()] }],
    ["returns more records than a page has", { status: 200, body: { status: "ok", data: Array(101).fill({}) } }],
    ["returns 400", { status: 400, body: { error: "no" } }],
  ])("reports no usable response when it %s", async (_, mode) => {
    const { find } = await setup([createExplorerRecord()], mode);
    await expect(find()).rejects.toMatchObject(unusable);
  });

  test("is accepted without a status in the body", async () => {
    const { find } = await setup([], { status: 200, body: { data: [createExplorerRecord()], error: null } });
    expect(await find()).toHaveLength(1);
  });

  test("times out after eight seconds, and is in cooldown when it hangs", async () => {
    const { find, stub } = await setup([createExplorerRecord()], "hang");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const settled: unknown[] = [];
    const all = Array.from({ length: 6 }, () => find().catch((error: unknown) => settled.push(error)));
    // expect.poll would use the fake timers.
    while (stub.queries.length < 4) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(7_999);
    expect(settled).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await Promise.all(all);
    expect(settled).toEqual(Array(6).fill(expect.objectContaining(unusable)));
    await expect(find()).rejects.toMatchObject(coolingDown);
  });

  test("is in cooldown after five failures in a row, and back after a successful probe", async () => {
    const { find, stub, pass } = await setup([createExplorerRecord()], "down");
    for (let i = 0; i < 4; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    stub.mode = "healthy";
    expect(await find()).toHaveLength(1);
    stub.mode = "down";
    for (let i = 0; i < 5; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    expect(stub.queries).toHaveLength(10);
    stub.mode = "healthy";
    pass(1_999);
    await expect(find()).rejects.toMatchObject(coolingDown);
    expect(stub.queries).toHaveLength(10);

    // A failing probe is the only request of its interval.
    stub.mode = "down";
    pass(1);
    const probes = await Promise.allSettled([find(), find(), find()]);
    expect(probes.map((probe) => (probe as PromiseRejectedResult).reason.message)).toEqual([
      unusable.message,
      coolingDown.message,
      coolingDown.message,
    ]);
    expect(stub.queries).toHaveLength(11);

    stub.mode = "healthy";
    pass(2_000);
    expect(await find()).toHaveLength(1);
    expect(await find()).toHaveLength(1);
  });

  /** Requests a transfer, and no longer waits for it once the explorer has got so many queries. */
  async function findAndAbort({ stub, explorer }: Pick<Setup, "stub" | "explorer">, queries: number): Promise<void> {
    const caller = new AbortController();
    const result = explorer.findTransfers(String(transferId), caller.signal);
    await expect.poll(() => stub.queries).toHaveLength(queries);
    caller.abort();
    await expect(result).rejects.toMatchObject(unusable);
  }

  test("is not waited for by callers that abort, which does not count as a failure", async () => {
    const { stub, explorer, find } = await setup([createExplorerRecord()], "hang");
    for (let queries = 1; queries <= 6; queries += 1) await findAndAbort({ stub, explorer }, queries);
    stub.mode = "healthy";
    expect(await find()).toHaveLength(1);
  });

  test("does not extend the cooldown when the caller of a probe aborts", async () => {
    const { stub, explorer, find, pass } = await setup([createExplorerRecord()], "down");
    for (let i = 0; i < 5; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    pass(30_000);
    stub.mode = "hang";
    await findAndAbort({ stub, explorer }, 6);
    stub.mode = "healthy";
    expect(await find()).toHaveLength(1);
  });

  test("is in cooldown for its Retry-After, except for probes", async () => {
    const limited = { status: 429, body: {}, headers: { "retry-after": "7" } };
    const { find, stub, pass } = await setup([], limited);
    await expect(find()).rejects.toMatchObject(unusable);
    pass(1_999);
    await expect(find()).rejects.toMatchObject(coolingDown);
    expect(stub.queries).toHaveLength(1);
    pass(1);
    await expect(find()).rejects.toMatchObject(unusable);
    await expect(find()).rejects.toMatchObject(coolingDown);
    expect(stub.queries).toHaveLength(2);
  });

  test("gets at most four requests at a time", async () => {
    const { find, stub } = await setup([createExplorerRecord()], "slow");
    await Promise.all(Array.from({ length: 9 }, () => find()));
    expect(stub.queries).toHaveLength(9);
    expect(stub.maxConcurrent).toBe(4);
  });
});

test("reports the outcome of the last request and the age of the last success", async () => {
  const { explorer, stub, find, pass } = await setup();
  expect(explorer.health()).toEqual({ state: "unknown", ageMs: undefined });
  await find();
  pass(500);
  expect(explorer.health()).toEqual({ state: "ok", ageMs: 500 });
  stub.mode = "down";
  await expect(find()).rejects.toMatchObject(unusable);
  expect(explorer.health()).toEqual({ state: "failing", ageMs: 500 });
});
