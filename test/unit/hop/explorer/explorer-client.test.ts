import { afterEach, describe, expect, test, vi } from "vitest";
import { createExplorerClient } from "../../../../src/hop/explorer/explorer-client.js";
import {
  createExplorerRecord,
  type ExplorerMode,
  type ExplorerRecordJson,
  startExplorerStub,
} from "../../../support/stubs/explorer-stub.js";
import { startHttpStub } from "../../../support/stubs/http-stub.js";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function setup(records: readonly ExplorerRecordJson[] = [createExplorerRecord()], mode: ExplorerMode = "well") {
  const stub = await startExplorerStub(records);
  stub.mode = mode;
  let time = 0;
  const explorer = createExplorerClient({ baseUrl: stub.url, now: () => time });
  closing.push(explorer.close, stub.close);
  const waiting = new AbortController();
  const find = (asked: unknown = transferId) => explorer.findTransfers(String(asked), waiting.signal);
  return { stub, explorer, waiting, find, pass: (ms: number) => (time += ms) };
}

const { transferId, transactionHash, bondTransactionHash } = createExplorerRecord();
const hash = (byte: string): string => `0x${byte.repeat(32)}`;
const address = (byte: string): string => `0x${byte.repeat(20)}`;
const unusable = { reason: "UPSTREAM_UNAVAILABLE", message: "the explorer gives no usable answer" };
const leftAlone = {
  reason: "UPSTREAM_UNAVAILABLE",
  message: "the explorer is left alone for a while after its failures",
};

/** What is made of one record, asked for by its own transaction. */
async function read(others: ExplorerRecordJson) {
  const { find } = await setup([createExplorerRecord(others)], "foreign");
  return find(String(others.transactionHash ?? transactionHash).toLowerCase());
}

describe("a record of the explorer", () => {
  test("is read with all that it says", async () => {
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
        recipient: address("d2"),
        amount: 2_500_000_000_000_000_000n,
        amountOutMin: 2_490_000_000_000_000_000n,
        deadline: 1662159408n,
        bonderFee: 250_000_000_000_000_000n,
        isReceived: true,
        bondTransactionHash,
        bonder: address("e3"),
        priceUsd: 1.002,
      },
    ]);
    expect(stub.queries).toEqual([transferId]);
  });

  test.each([transferId, transactionHash, bondTransactionHash])("is found by %s", async (asked) => {
    const { find } = await setup();
    expect(await find(asked)).toMatchObject([{ id: transferId }]);
  });

  test("is none where the explorer knows none", async () => {
    const { find } = await setup();
    expect(await find(hash("99"))).toEqual([]);
  });

  const pending = { bonded: false, bondTransactionHash: "", bonderAddress: null, bondTimestamp: 0 };
  test.each<[string, ExplorerRecordJson, object]>([
    ["numbers as text", { sourceChainId: "10", timestamp: "1661554612", deadline: "7", bonded: "1" }, { deadline: 7n }],
    ["text as numbers", { amount: 12, amountOutMin: 3, bonderFee: 0, bonded: 1 }, { amount: 12n, amountOutMin: 3n }],
    ["flags as words", { bonded: "True" }, { isReceived: true }],
    [
      "hex in capitals",
      { transferId: hash("1A"), accountAddress: address("C1") },
      { id: hash("1a"), account: address("c1") },
    ],
    ["no slugs", { sourceChainSlug: null, destinationChainSlug: undefined }, { source: { chainId: 10 } }],
    ["no chain ids", { sourceChainId: "", destinationChainId: null }, { destination: { chainId: 42161 } }],
    ["another name of a chain", { sourceChainId: 100, sourceChainSlug: "xdai" }, { source: { slug: "gnosis" } }],
    ["another name of a token", { token: "wxdai" }, { token: "DAI" }],
    [
      "a bond without its hash",
      { bondTransactionHash: null, bonderAddress: "" },
      { isReceived: true, bonder: undefined },
    ],
    ["no bond", pending, { isReceived: false, bondTransactionHash: undefined, bonder: undefined }],
    ["nothing of a bond", { ...pending, bonded: null, bondTransactionHash: undefined }, { isReceived: false }],
    [
      "nothing of the rest",
      { amountOutMin: null, deadline: "", bonderFee: undefined },
      { amountOutMin: 0n, deadline: 0n, bonderFee: 0n },
    ],
    [
      "a minimum and no deadline on L1",
      { ...pending, destinationChainId: 1, destinationChainSlug: null, deadline: null },
      { isReceived: false },
    ],
    ["no bond and nothing of the rest", { ...pending, amountOutMin: null, deadline: null }, { isReceived: false }],
    ["the largest amount", { amount: String(2n ** 256n - 1n), amountUsd: 0 }, { amount: 2n ** 256n - 1n }],
    ["no price but a value", { tokenPriceUsd: null }, { priceUsd: 2.505 / 2.5 }],
    ["a price as text", { tokenPriceUsd: "1.5" }, { priceUsd: 1.5 }],
    ["a price that is none", { tokenPriceUsd: 0, amountUsd: "2.5" }, { priceUsd: 1 }],
    ["no price", { tokenPriceUsd: "", amountUsd: "" }, { priceUsd: undefined }],
    ["prices that are none", { tokenPriceUsd: -1, amountUsd: "1e999" }, { priceUsd: undefined }],
    ["bridged USDC", { token: "USDC" }, { kind: "l2", token: "USDC.e" }],
    ["bridged USDC by its name", { token: "USDC.e" }, { kind: "l2", token: "USDC.e" }],
    [
      "CCTP",
      { token: "USDC", transferId: "123", amountOutMin: null, deadline: 0 },
      { kind: "cctp", id: "123", token: "USDC" },
    ],
    ["CCTP as a number", { token: "USDC.e", transferId: 123 }, { kind: "cctp", id: "123", token: "USDC" }],
    ["a send from L1", { sourceChainId: 1, sourceChainSlug: "ethereum", transferId: transactionHash }, { kind: "l1" }],
    [
      "a long id from L1",
      { sourceChainId: 1, sourceChainSlug: "ethereum", transferId: `${transactionHash}0000002A` },
      { kind: "l1", id: `${transactionHash}0000002a` },
    ],
    [
      "an id with a number from L1",
      { sourceChainId: 1, sourceChainSlug: null, transferId: `${transactionHash}-3` },
      { kind: "l1" },
    ],
    [
      "a send to L1 with nothing to swap",
      { ...pending, destinationChainId: 1, destinationChainSlug: "ethereum", amountOutMin: 0, deadline: 0 },
      { isReceived: false },
    ],
    [
      "an unbondable one",
      { ...pending, destinationChainId: 1, destinationChainSlug: null, amountOutMin: null, unbondable: true },
      { deadline: 1662159408n },
    ],
    [
      "a received one to L1 of which little is known",
      { destinationChainId: 1, destinationChainSlug: null, amountOutMin: null, deadline: null },
      { isReceived: true },
    ],
  ])("is believed with %s", async (_, others, expected) => {
    const [record, ...more] = await read(others);
    expect(record).toMatchObject(expected);
    expect(more).toEqual([]);
  });

  const fromL1 = { sourceChainId: 1, sourceChainSlug: "ethereum" };
  const toL1 = { ...pending, destinationChainId: 1, destinationChainSlug: "ethereum" };
  test.each<[string, ExplorerRecordJson]>([
    ["no token", { token: "" }],
    ["no id", { transferId: null }],
    ["neither, as for a hash that is not indexed", { token: "", transferId: "", amount: 0 }],
    ["an unknown token", { token: "DOGE" }],
    ["a token that is not on its source", { token: "rETH", sourceChainId: 137, sourceChainSlug: "polygon" }],
    [
      "a token that is not on its destination",
      {
        token: "MAGIC",
        destinationChainId: 10,
        sourceChainId: 42161,
        sourceChainSlug: null,
        destinationChainSlug: null,
      },
    ],
    ["a short id", { transferId: "0x1a" }],
    ["a long id from L2", { transferId: `${hash("1a")}00` }],
    ["a short id from L1", { ...fromL1, transferId: "0x1a" }],
    ["an id that is no hex", { transferId: `0x${"zz".repeat(32)}` }],
    ["a nonce beyond 64 bits", { token: "USDC", transferId: String(2n ** 64n) }],
    ["a nonce of another token", { transferId: "123" }],
    [
      "a nonce from a chain without CCTP",
      { token: "USDC", transferId: "123", sourceChainId: 100, sourceChainSlug: "gnosis" },
    ],
    [
      "a nonce to a chain without CCTP",
      { token: "USDC", transferId: "123", destinationChainId: 100, destinationChainSlug: "gnosis" },
    ],
    ["an unknown chain", { sourceChainId: 56, sourceChainSlug: null }],
    ["an unknown slug", { destinationChainId: null, destinationChainSlug: "bsc" }],
    ["no chain", { sourceChainId: null, sourceChainSlug: "" }],
    ["a chain with another's slug", { sourceChainId: 10, sourceChainSlug: "polygon" }],
    ["a known chain with an unknown slug", { sourceChainId: 10, sourceChainSlug: "bsc" }],
    ["one chain for both", { destinationChainId: 10, destinationChainSlug: "optimism" }],
    ["a negative amount", { amount: "-1" }],
    ["an amount with a fraction", { amount: 1.5 }],
    ["an amount that a number does not hold", { amount: 2e18 }],
    ["an amount with a zero in front", { amount: "012" }],
    ["an amount in hex", { amount: "0x10" }],
    ["an amount beyond 256 bits", { amount: String(2n ** 256n) }],
    ["an amount that is an object", { amount: { type: "BigNumber", hex: "0x10" } }],
    ["no amount", { amount: null }],
    ["a fee that is none", { bonderFee: "free" }],
    ["a deadline that is none", { deadline: 1.157920892373162e77 }],
    ["a minimum that is none", { amountOutMin: true }],
    ["no time", { timestamp: null }],
    ["time 0", { timestamp: 0 }],
    ["a time in milliseconds", { timestamp: 1661554612000 }],
    ["an account that is none", { accountAddress: hash("c1") }],
    ["no account", { accountAddress: "" }],
    ["no recipient", { recipientAddress: null }],
    ["a bond hash that is none", { bondTransactionHash: address("3c") }],
    ["a bonder that is none", { bonderAddress: "hop.eth" }],
    ["a flag that is none", { bonded: "maybe" }],
    ["a flag that is a number", { bonded: 2 }],
    ["a bond hash and no bond", { bonded: false }],
    ["a bond hash and nothing of a bond", { bonded: null, bonderAddress: null }],
    ["a bonder and no bond", { bonded: false, bondTransactionHash: null }],
    ["nothing of what decides on L1", { ...toL1, amountOutMin: null, deadline: 0 }],
    ["nothing of a deadline on L1", { ...toL1, amountOutMin: "0", deadline: null }],
    ["unbondable without a reason", { ...toL1, amountOutMin: "0", deadline: 0, unbondable: true }],
    ["unbondable and not towards L1", { unbondable: 1 }],
    ["unbondable over CCTP", { ...toL1, token: "USDC", transferId: "123", unbondable: true }],
    ["unbondable from L1", { ...fromL1, transferId: transactionHash, unbondable: "true" }],
  ])("is dropped with %s", async (_, others) => {
    expect(await read(others)).toEqual([]);
  });

  test.each([[null], ["text"], [7], [[]], [[createExplorerRecord()]]])("is dropped where it is %j", async (json) => {
    const { find } = await setup([], { status: 200, body: { status: "ok", data: [json, createExplorerRecord()] } });
    expect(await find()).toHaveLength(1);
  });

  test("is dropped with a hash that is none", async () => {
    const { find } = await setup([createExplorerRecord({ transactionHash: "0x2b" })]);
    expect(await find()).toEqual([]);
  });
});

describe("several records", () => {
  test("belong to what was asked, or are dropped", async () => {
    const foreign = createExplorerRecord({
      transferId: hash("77"),
      transactionHash: hash("78"),
      bondTransactionHash: hash("79"),
    });
    const { find } = await setup([foreign, createExplorerRecord()], "foreign");
    expect(await find()).toMatchObject([{ id: transferId }]);
    expect(await find(hash("70"))).toEqual([]);
  });

  test("come in the order of their ids, whatever the answer's", async () => {
    const ids = [hash("44"), hash("11"), hash("9f")];
    const { find } = await setup(ids.map((id) => createExplorerRecord({ transferId: id })));
    expect((await find(transactionHash)).map(({ id }) => id)).toEqual([hash("11"), hash("44"), hash("9f")]);
    const nonces = [123, 9, 45].map((nonce) => createExplorerRecord({ token: "USDC", transferId: nonce }));
    const cctp = await setup(nonces);
    expect((await cctp.find(transactionHash)).map(({ id }) => id)).toEqual(["9", "45", "123"]);
  });

  test("that say the same are one", async () => {
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
    ["of one transaction from two senders", { transferId: hash("44"), accountAddress: address("44") }],
    ["of one transaction at two times", { transferId: hash("44"), timestamp: 1661554613 }],
  ])("that contradict each other are dropped: %s", async (_, others) => {
    const apart = createExplorerRecord({ transferId: hash("55"), transactionHash: hash("66") });
    const { find } = await setup([createExplorerRecord(), createExplorerRecord(others), apart], "foreign");
    expect(await find(transactionHash)).toEqual([]);
    expect(await find(bondTransactionHash)).toMatchObject([{ id: hash("55") }]);
  });

  test("with one CCTP nonce on several chains do not contradict each other", async () => {
    const cctp = createExplorerRecord({ token: "USDC", transferId: "5" });
    const other = { ...cctp, sourceChainId: 137, sourceChainSlug: null, transactionHash: hash("66") };
    const { find } = await setup([cctp, other]);
    expect(await find("5")).toHaveLength(2);
  });
});

describe("an explorer that gives no usable answer", () => {
  test.each<[string, ExplorerMode]>([
    ["is down", "down"],
    ["gives a page", "html"],
    ["gives an error as an answer", "error"],
    ["gives more than is read", "endless"],
    ["gives a status that is not well", { status: 200, body: { status: "error", data: [] } }],
    ["gives no list", { status: 200, body: { status: "ok", data: { 0: createExplorerRecord() } } }],
    ["gives nothing", { status: 200, body: null }],
    ["gives a list without anything around it", { status: 200, body: [createExplorerRecord()] }],
    ["gives more records than a page has", { status: 200, body: { status: "ok", data: Array(101).fill({}) } }],
    ["refuses", { status: 400, body: { error: "no" } }],
  ])("%s: cannot know, and says no more", async (_, mode) => {
    const { find } = await setup([createExplorerRecord()], mode);
    await expect(find()).rejects.toMatchObject(unusable);
  });

  test("is believed without a status", async () => {
    const { find } = await setup([], { status: 200, body: { data: [createExplorerRecord()], error: null } });
    expect(await find()).toHaveLength(1);
  });

  test("is not waited for by who has left", async () => {
    const { find, stub, waiting } = await setup([createExplorerRecord()], "hang");
    const found = find();
    await expect.poll(() => stub.queries).toHaveLength(1);
    waiting.abort();
    await expect(found).rejects.toMatchObject(unusable);
  });

  test("is not waited for longer than three seconds, and is left alone when it hangs", async () => {
    const { find, stub } = await setup([createExplorerRecord()], "hang");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    closing.push(async () => {
      vi.useRealTimers();
    });
    const settled: unknown[] = [];
    const all = Array.from({ length: 6 }, () => find().catch((error: unknown) => settled.push(error)));
    // Not by expect.poll, which would move these timers.
    while (stub.queries.length < 4) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(settled).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await Promise.all(all);
    expect(settled).toEqual(Array(6).fill(expect.objectContaining(unusable)));
    await expect(find()).rejects.toMatchObject(leftAlone);
  });

  test("is left alone after five failures in a row, then asked once, and again when that is well", async () => {
    const { find, stub, pass } = await setup([createExplorerRecord()], "down");
    for (let i = 0; i < 4; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    stub.mode = "well";
    expect(await find()).toHaveLength(1);
    stub.mode = "down";
    for (let i = 0; i < 5; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    expect(stub.queries).toHaveLength(10);
    stub.mode = "well";
    pass(1_999);
    await expect(find()).rejects.toMatchObject(leftAlone);
    expect(stub.queries).toHaveLength(10);

    // The probe that fails is the only one for as long again.
    stub.mode = "down";
    pass(1);
    const probes = await Promise.allSettled([find(), find(), find()]);
    expect(probes.map((each) => (each as PromiseRejectedResult).reason.message)).toEqual([
      unusable.message,
      leftAlone.message,
      leftAlone.message,
    ]);
    expect(stub.queries).toHaveLength(11);

    stub.mode = "well";
    pass(2_000);
    expect(await find()).toHaveLength(1);
    expect(await find()).toHaveLength(1);
  });

  test("is not blamed for who leaves", async () => {
    const { stub, explorer, find } = await setup([createExplorerRecord()], "hang");
    for (let i = 0; i < 6; i += 1) {
      const leaving = new AbortController();
      const left = explorer.findTransfers(String(transferId), leaving.signal);
      await expect.poll(() => stub.queries).toHaveLength(i + 1);
      leaving.abort();
      await expect(left).rejects.toMatchObject(unusable);
    }
    stub.mode = "well";
    expect(await find()).toHaveLength(1);
  });

  test("is not left alone for longer because the caller of a probe leaves", async () => {
    const { stub, explorer, find, pass } = await setup([createExplorerRecord()], "down");
    for (let i = 0; i < 5; i += 1) await expect(find()).rejects.toMatchObject(unusable);
    pass(30_000);
    stub.mode = "hang";
    const leaving = new AbortController();
    const left = explorer.findTransfers(String(transferId), leaving.signal);
    await expect.poll(() => stub.queries).toHaveLength(6);
    leaving.abort();
    await expect(left).rejects.toMatchObject(unusable);
    stub.mode = "well";
    expect(await find()).toHaveLength(1);
  });

  test("is left alone for as long as it asks for, but for a try now and then", async () => {
    let asked = 0;
    const stub = await startHttpStub((_, response) => {
      asked += 1;
      response.writeHead(429, { "retry-after": "7" }).end();
    });
    let time = 0;
    const busy = createExplorerClient({ baseUrl: stub.url, now: () => time });
    closing.push(busy.close, stub.close);
    const { signal } = new AbortController();
    await expect(busy.findTransfers(hash("1a"), signal)).rejects.toMatchObject(unusable);
    time = 1_999;
    await expect(busy.findTransfers(hash("1a"), signal)).rejects.toMatchObject(leftAlone);
    expect(asked).toBe(1);
    time = 2_000;
    await expect(busy.findTransfers(hash("1a"), signal)).rejects.toMatchObject(unusable);
    await expect(busy.findTransfers(hash("1a"), signal)).rejects.toMatchObject(leftAlone);
    expect(asked).toBe(2);
  });

  test("is asked a few things at a time", async () => {
    const { find, stub } = await setup([createExplorerRecord()], "slow");
    await Promise.all(Array.from({ length: 9 }, () => find()));
    expect(stub.queries).toHaveLength(9);
    expect(stub.maxConcurrent).toBe(4);
  });
});

test("the health of the explorer is what it did last, and how long ago it answered", async () => {
  const { explorer, stub, find, pass } = await setup();
  expect(explorer.health()).toEqual({ state: "unknown", ageMs: undefined });
  await find();
  pass(500);
  expect(explorer.health()).toEqual({ state: "ok", ageMs: 500 });
  stub.mode = "down";
  await expect(find()).rejects.toMatchObject(unusable);
  expect(explorer.health()).toEqual({ state: "failing", ageMs: 500 });
});
