import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { toHexQuantity } from "../../../devnet/chain/json-rpc.js";
import { connectChains, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import type { TransactionReceipt } from "../../../devnet/chain/transactions.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../../devnet/transfer/sent-transfer.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { type RpcProxy, type RpcProxyBehaviour, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// Status over endpoints as they are in the field. The chains are the test's own: thousands of blocks follow what stands
// on them from the start, so that a limit on searches is one, and transfers are sent, delivered and undone.

const longChains = ["ethereum", "polygon", "arbitrum", "optimism"];
const BLOCKS_SINCE = 2_100;
/** Each block has the local network look at it: a few at a time. */
const BLOCKS_PER_REQUEST = 100;

let network: LocalNetwork;
let chains: LocalChains;
const proxies = new Map<string, RpcProxy>();
let environment: Record<string, string>;
/** Answers of a gateway that nothing stands in the way of, by query. */
const expected = new Map<string, unknown>();
const queries: string[] = [];

beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
  await Promise.all(longChains.map(mineMany));
  environment = { ...network.environment };
  for (const [slug, { url }] of Object.entries(network.chains)) {
    const proxy = await startRpcProxy(url);
    proxies.set(slug, proxy);
    environment[`RPC_URL_${slug.toUpperCase()}`] = proxy.url;
  }
  const plain = await startGateway(network.environment);
  for (const { transferId, transactionHash, expectedState } of network.transfers) {
    if (expectedState === "NOT_FOUND") continue;
    const byBoth = `transferId=${transferId}&transactionHash=${transactionHash}`;
    const { status, body } = await plain.get(`/v1/transfer-status?${byBoth}`);
    expect({ status, body }).toMatchObject({ status: 200, body: { state: expectedState } });
    expected.set(byBoth, body);
    expected.set(`transferId=${transferId}`, body);
    const { bondTransactionHash } = body as { bondTransactionHash: string };
    if (bondTransactionHash !== "") expected.set(`transferHash=${bondTransactionHash}`, body);
  }
  await plain.stop();
  queries.push(...expected.keys());
});
afterAll(async () => {
  await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
  await network.stop();
});

async function mineMany(slug: string): Promise<void> {
  const { rpc } = getLocalChain(chains, slug);
  for (let mined = 0; mined < BLOCKS_SINCE; mined += BLOCKS_PER_REQUEST)
    await rpc("anvil_mine", [toHexQuantity(BLOCKS_PER_REQUEST), "0x1"]);
}

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startGateway(environment);
});
afterEach(async () => {
  await gateway.stop();
  behave({
    maxLogBlocks: undefined,
    namesLogLimit: true,
    batchErrorStatus: undefined,
    lagBlocks: 0,
    latencyMs: 0,
    errorStatus: undefined,
  });
});

function behave(behaviour: Partial<RpcProxyBehaviour>, slugs: Iterable<string> = proxies.keys()): void {
  for (const slug of slugs) Object.assign(proxies.get(slug)?.behaviour ?? {}, behaviour);
}

const pathOf = (query: string): string => `/v1/transfer-status?${query}`;

/** What the other transfers of a transaction are called does not depend on how it is asked for. */
const withoutOthers = (body: unknown) => ({ ...(body as object), otherTransferIds: [] });

/** That it has arrived is told at once; where the machine is slow, by whom and in which transaction comes with a later answer. */
const withoutDelivery = (body: unknown) => ({ ...(body as object), bondTransactionHash: "", bonderAddress: "" });

const ways: readonly (readonly [string, Partial<RpcProxyBehaviour>])[] = [
  ["that refuse more than 500 blocks, and say so", { maxLogBlocks: 500 }],
  ["that refuse more than 2,000 blocks, without saying how many", { maxLogBlocks: 2_000, namesLogLimit: false }],
  ["that refuse batches", { batchErrorStatus: 400 }],
  ["that are slow", { latencyMs: 30 }],
];

describe.each(ways)("with endpoints %s", (_, behaviour) => {
  test("every transfer is found by id, by hash, by both and by the delivering transaction", async () => {
    behave(behaviour);
    const ask = async (query: string) => {
      const { status, body } = await gateway.get(pathOf(query));
      return { query, status, body: withoutOthers(body) };
    };
    const right = (query: string) => ({ query, status: 200, body: withoutOthers(expected.get(query)) });
    const soon = (answer: ReturnType<typeof right>) => ({ ...answer, body: withoutDelivery(answer.body) });
    const answers = await Promise.all(queries.map(ask));
    expect(answers.map(soon)).toEqual(queries.map((query) => soon(right(query))));
    for (const query of queries) {
      await vi.waitFor(async () => expect(await ask(query)).toEqual(right(query)), { timeout: 60_000, interval: 250 });
    }
  });
});

async function send(source: string, destination: string, amount = 10n ** 17n): Promise<string> {
  const [from = ""] = (await getLocalChain(chains, source).rpc("eth_accounts")) as string[];
  await fundAccount(chains, source, "ETH", from, amount);
  const { transactionHash } = await sendTransfer(chains, {
    token: "ETH",
    source,
    destination,
    from,
    recipient: from,
    amount,
    bonderFee: source === "ethereum" ? 0n : amount / 20n,
    amountOutMin: 0n,
    deadline: 4_000_000_000,
    destinationAmountOutMin: 0n,
    destinationDeadline: destination === "ethereum" ? 0 : 4_000_000_000,
  });
  return transactionHash;
}

async function stateOf(query: string): Promise<unknown> {
  const { status, body } = await gateway.get(pathOf(query));
  const { state, reason } = body as { state?: string; reason?: string };
  return status === 200 ? state : reason;
}

/** Asks until the state is another, and gives every state that was answered, each once. */
async function statesUntil(query: string, last: string): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  await expect
    .poll(
      async () => {
        const state = await stateOf(query);
        if (seen.at(-1) !== state) seen.push(state);
        return state;
      },
      { timeout: 10_000, interval: 100 },
    )
    .toBe(last);
  return seen;
}

describe("a transfer that is under way", () => {
  test.each([
    ["arbitrum", "polygon"],
    ["optimism", "base"],
    ["ethereum", "arbitrum"],
  ])("from %s to %s is pending, then bonded, and nothing else in between", async (source, destination) => {
    const query = `transactionHash=${await send(source, destination)}`;
    expect(await stateOf(query)).toBe("PENDING");
    const seen = statesUntil(query, "BONDED");
    await network.bonder.deliverPending();
    expect(await seen).toEqual(["PENDING", "BONDED"]);
    const { body } = await gateway.get(pathOf(query));
    const { bondTransactionHash } = body as { bondTransactionHash: string };
    expect((await gateway.get(pathOf(`transactionHash=${bondTransactionHash}`))).body).toEqual(body);
  });

  test("that two sent alike and one has arrived: the first is bonded", async () => {
    const first = await send("ethereum", "optimism", 2n * 10n ** 16n);
    const second = await send("ethereum", "optimism", 2n * 10n ** 16n);
    behave({ maxLogBlocks: 500 });
    expect(await stateOf(`transactionHash=${second}`)).toBe("PENDING");
    const receipt = (await getLocalChain(chains, "ethereum").rpc("eth_getTransactionReceipt", [
      first,
    ])) as TransactionReceipt;
    for (const transfer of parseSentTransfers("ethereum", receipt.logs)) await deliverTransfer(chains, transfer);
    expect(await statesUntil(`transactionHash=${first}`, "BONDED")).not.toContain("UNBONDABLE");
    expect(await stateOf(`transactionHash=${second}`)).toBe("PENDING");
    expect(await stateOf(`transferId=${second}`)).toBe("PENDING");
    await network.bonder.deliverPending();
  });
});

test("an endpoint that lags behind its peer is passed over", async () => {
  // Not one of the long chains: their blocks are from the future by now, which is no measure for anyone.
  await getLocalChain(chains, "base").rpc("anvil_mine", [toHexQuantity(30), "0x1"]);
  const url = network.chains.base?.url ?? "";
  const lagging = await startRpcProxy(url, { lagBlocks: 20 });
  const both = await startGateway({ ...environment, RPC_URL_BASE: `${lagging.url},${url}` });
  const answers = async () => (await both.get(pathOf(query))).body;
  let query = `transferHash=0x${"12".repeat(32)}`;
  try {
    // What the endpoints are like is found out beside the first questions.
    await answers();
    query = `transactionHash=${await send("base", "polygon")}`;
    await expect.poll(answers).toMatchObject({ state: "PENDING" });
    await network.bonder.deliverPending();
    await expect.poll(answers).toMatchObject({ state: "BONDED" });
  } finally {
    await both.stop();
    await lagging.close();
  }
});

describe("blocks that are undone", () => {
  test("take a delivery and a transfer with them", async () => {
    const { rpc: source } = getLocalChain(chains, "optimism");
    const { rpc: destination } = getLocalChain(chains, "polygon");
    const beforeSending = await source("evm_snapshot");
    const query = `transactionHash=${await send("optimism", "polygon")}`;
    expect(await stateOf(query)).toBe("PENDING");
    const beforeDelivery = await destination("evm_snapshot");
    await network.bonder.deliverPending();
    await statesUntil(query, "BONDED");
    const { body, headers } = await gateway.get(pathOf(query));
    expect(headers.get("cache-control")).toBe("public, max-age=2");
    const byBond = `transactionHash=${(body as { bondTransactionHash: string }).bondTransactionHash}`;
    expect(await stateOf(byBond)).toBe("BONDED");

    await destination("evm_revert", [beforeDelivery]);
    await statesUntil(query, "PENDING");
    await statesUntil(byBond, "TRANSFER_NOT_FOUND");
    await source("evm_revert", [beforeSending]);
    await statesUntil(query, "TRANSFER_NOT_FOUND");
  });
});
