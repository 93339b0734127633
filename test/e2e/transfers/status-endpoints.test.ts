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

// Status over endpoints with the limits of real ones. The test has chains of its own: thousands of blocks follow the seeded
// transfers, so that limits on log searches take effect, and transfers are sent, delivered and reorged.

const longChains = ["ethereum", "polygon", "arbitrum", "optimism"];
const MINED_BLOCKS = 2_100;
/** The local network processes every block, so they are mined in small batches. */
const BLOCKS_PER_REQUEST = 100;

const CONCURRENCY = 8;

let network: LocalNetwork;
let chains: LocalChains;
const proxies = new Map<string, RpcProxy>();
let environment: Record<string, string>;
/** Responses of a gateway with unrestricted endpoints, by query. */
const expected = new Map<string, unknown>();
const queries: string[] = [];

beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
  await Promise.all(longChains.map(mineMany));
  environment = { ...network.environment, REQUEST_TIMEOUT_MS: "60000" };
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
  for (let mined = 0; mined < MINED_BLOCKS; mined += BLOCKS_PER_REQUEST)
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

/** Removes the siblings, which depend on the transaction that was queried. */
const withoutOthers = (body: unknown) => ({ ...(body as object), otherTransferIds: [] });

/** Removes the details of the delivery: on a slow machine they come with a later response than the state. */
const withoutDelivery = (body: unknown) => ({ ...(body as object), bondTransactionHash: "", bonderAddress: "" });

const endpointKinds: readonly (readonly [string, Partial<RpcProxyBehaviour>])[] = [
  ["that reject more than 500 blocks and name the limit", { maxLogBlocks: 500 }],
  ["that reject more than 2,000 blocks without naming the limit", { maxLogBlocks: 2_000, namesLogLimit: false }],
  ["that reject batches", { batchErrorStatus: 400 }],
  ["that are slow", { latencyMs: 30 }],
];

describe.each(endpointKinds)("with endpoints %s", (_, behaviour) => {
  test("finds every transfer by ID, by hash, by both and by the delivering transaction", async () => {
    behave(behaviour);
    const request = async (query: string) => {
      const { status, body } = await gateway.get(pathOf(query));
      return { query, status, body: withoutOthers(body) };
    };
    const expectedResponse = (query: string) => ({ query, status: 200, body: withoutOthers(expected.get(query)) });
    const withoutDetails = (response: ReturnType<typeof expectedResponse>) => ({
      ...response,
      body: withoutDelivery(response.body),
    });
    const responses: Awaited<ReturnType<typeof request>>[] = [];
    // A few at a time: an attempt at an endpoint has 1.5 seconds, also on a busy machine.
    for (let index = 0; index < queries.length; index += CONCURRENCY) {
      responses.push(...(await Promise.all(queries.slice(index, index + CONCURRENCY).map(request))));
    }
    expect(responses.map(withoutDetails)).toEqual(queries.map((query) => withoutDetails(expectedResponse(query))));
    for (const query of queries) {
      await vi.waitFor(async () => expect(await request(query)).toEqual(expectedResponse(query)), {
        timeout: 60_000,
        interval: 250,
      });
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

async function getState(query: string): Promise<unknown> {
  const { status, body } = await gateway.get(pathOf(query));
  const { state, reason } = body as { state?: string; reason?: string };
  return status === 200 ? state : reason;
}

/** Polls until a state is reached and returns every state on the way, each once. */
async function collectStatesUntil(query: string, last: string): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  await expect
    .poll(
      async () => {
        const state = await getState(query);
        if (seen.at(-1) !== state) seen.push(state);
        return state;
      },
      { timeout: 10_000, interval: 100 },
    )
    .toBe(last);
  return seen;
}

describe("a transfer in flight", () => {
  test.each([
    ["arbitrum", "polygon"],
    ["optimism", "base"],
    ["ethereum", "arbitrum"],
  ])("from %s to %s is PENDING, then BONDED, and nothing else in between", async (source, destination) => {
    const query = `transactionHash=${await send(source, destination)}`;
    expect(await getState(query)).toBe("PENDING");
    const seen = collectStatesUntil(query, "BONDED");
    await network.bonder.deliverPending();
    expect(await seen).toEqual(["PENDING", "BONDED"]);
    const { body } = await gateway.get(pathOf(query));
    const { bondTransactionHash } = body as { bondTransactionHash: string };
    expect((await gateway.get(pathOf(`transactionHash=${bondTransactionHash}`))).body).toEqual(body);
  });

  test("is BONDED before a later one with equal values", async () => {
    const first = await send("ethereum", "optimism", 2n * 10n ** 16n);
    const second = await send("ethereum", "optimism", 2n * 10n ** 16n);
    behave({ maxLogBlocks: 500 });
    expect(await getState(`transactionHash=${second}`)).toBe("PENDING");
    const receipt = (await getLocalChain(chains, "ethereum").rpc("eth_getTransactionReceipt", [
      first,
    ])) as TransactionReceipt;
    for (const transfer of parseSentTransfers("ethereum", receipt.logs)) await deliverTransfer(chains, transfer);
    expect(await collectStatesUntil(`transactionHash=${first}`, "BONDED")).not.toContain("UNBONDABLE");
    expect(await getState(`transactionHash=${second}`)).toBe("PENDING");
    expect(await getState(`transferId=${second}`)).toBe("PENDING");
    await network.bonder.deliverPending();
  });
});

test("an endpoint that lags behind its peer is bypassed", async () => {
  // Not one of the long chains: the times of their blocks lie in the future by now.
  await getLocalChain(chains, "base").rpc("anvil_mine", [toHexQuantity(30), "0x1"]);
  const url = network.chains.base?.url ?? "";
  const lagging = await startRpcProxy(url, { lagBlocks: 20 });
  const both = await startGateway({ ...environment, RPC_URL_BASE: `${lagging.url},${url}` });
  const getBody = async () => (await both.get(pathOf(query))).body;
  let query = `transferHash=0x${"12".repeat(32)}`;
  try {
    // The first requests trigger the probes of the endpoints.
    await getBody();
    query = `transactionHash=${await send("base", "polygon")}`;
    await expect.poll(getBody).toMatchObject({ state: "PENDING" });
    await network.bonder.deliverPending();
    await expect.poll(getBody).toMatchObject({ state: "BONDED" });
  } finally {
    await both.stop();
    await lagging.close();
  }
});

describe("reorgs", () => {
  test("remove a delivery and a transfer", async () => {
    const { rpc: source } = getLocalChain(chains, "optimism");
    const { rpc: destination } = getLocalChain(chains, "polygon");
    const beforeSend = await source("evm_snapshot");
    const query = `transactionHash=${await send("optimism", "polygon")}`;
    expect(await getState(query)).toBe("PENDING");
    const beforeDelivery = await destination("evm_snapshot");
    await network.bonder.deliverPending();
    await collectStatesUntil(query, "BONDED");
    const { body, headers } = await gateway.get(pathOf(query));
    expect(headers.get("cache-control")).toBe("public, max-age=2");
    const byBond = `transactionHash=${(body as { bondTransactionHash: string }).bondTransactionHash}`;
    expect(await getState(byBond)).toBe("BONDED");

    await destination("evm_revert", [beforeDelivery]);
    await collectStatesUntil(query, "PENDING");
    await collectStatesUntil(byBond, "TRANSFER_NOT_FOUND");
    await source("evm_revert", [beforeSend]);
    await collectStatesUntil(query, "TRANSFER_NOT_FOUND");
  });
});
