import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { toHexQuantity } from "../../../devnet/chain/json-rpc.js";
import { getLocalChain } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import type { TransactionReceipt } from "../../../devnet/chain/transactions.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../../devnet/transfer/sent-transfer.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { isFullEffort } from "../../support/effort.js";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import {
  startGateway,
  startGatewayForTest,
  type TestGateway,
  withGateway,
} from "../../support/service/in-process-gateway.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { type RpcProxyBehaviour, startRpcProxy, toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";

// Status over endpoints with the limits of real ones. The test has chains of its own: thousands of blocks follow the seeded
// transfers, so that limits on log searches take effect, and transfers are sent, delivered and reorged.

const longChains = ["ethereum", "polygon", "arbitrum", "optimism"];
const MINED_BLOCKS = 2_100;
/** The local network processes every block, so they are mined in small batches. */
const BLOCKS_PER_REQUEST = 100;

const CONCURRENCY = 8;

const { network, chains } = useOwnNetwork();
const proxies = useChainProxies(() => network.chains);
let environment: Record<string, string>;
/** Responses of a gateway with unrestricted endpoints, by query. */
const expected = new Map<string, unknown>();
const queries: string[] = [];

beforeAll(async () => {
  await Promise.all(longChains.map(mineMany));
  environment = { ...network.environment, REQUEST_TIMEOUT_MS: "60000", ...toRpcEnvironment(proxies) };
  await withGateway(network.environment, async (plain) => {
    for (const { transferId, transactionHash, expectedState } of network.transfers) {
      if (expectedState === "NOT_FOUND") continue;
      const byBoth = `transferId=${transferId}&transactionHash=${transactionHash}`;
      const { status, body } = await plain.get(`/v1/transfer-status?${byBoth}`);
      expect({ status, body }).toMatchObject({ status: 200, body: { state: expectedState } });
      expected.set(byBoth, body).set(`transferId=${transferId}`, body);
      const { bondTransactionHash } = body as { bondTransactionHash: string };
      if (bondTransactionHash !== "") expected.set(`transferHash=${bondTransactionHash}`, body);
    }
  });
  queries.push(...expected.keys());
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
  behave({ maxLogBlocks: undefined, namesLogLimit: true, batchErrorStatus: undefined, latencyMs: 0 });
});

function behave(changes: Partial<RpcProxyBehaviour>): void {
  for (const { behaviour } of proxies.values()) Object.assign(behaviour, changes);
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

// The short form asks each query of endpoints of one kind.
describe.each(endpointKinds.map((each, kind) => [...each, kind] as const))(
  "with endpoints %s",
  (_, behaviour, kind) => {
    test("finds every transfer by ID, by hash, by both and by the delivering transaction", async () => {
      behave(behaviour);
      const asked = isFullEffort ? queries : queries.filter((_, index) => index % endpointKinds.length === kind);
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
      for (let index = 0; index < asked.length; index += CONCURRENCY) {
        responses.push(...(await Promise.all(asked.slice(index, index + CONCURRENCY).map(request))));
      }
      expect(responses.map(withoutDetails)).toEqual(asked.map((query) => withoutDetails(expectedResponse(query))));
      for (const query of asked) {
        await vi.waitFor(async () => expect(await request(query)).toEqual(expectedResponse(query)), {
          timeout: 60_000,
          interval: 250,
        });
      }
    });
  },
);

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
  const lagging = closeAfterTest(await startRpcProxy(url, { lagBlocks: 20 }));
  const both = await startGatewayForTest({ ...environment, RPC_URL_BASE: `${lagging.url},${url}` });
  const getBody = async () => (await both.get(pathOf(query))).body;
  let query = `transferHash=0x${"12".repeat(32)}`;
  // The first requests trigger the probes of the endpoints.
  await getBody();
  query = `transactionHash=${await send("base", "polygon")}`;
  await expect.poll(getBody).toMatchObject({ state: "PENDING" });
  await network.bonder.deliverPending();
  await expect.poll(getBody).toMatchObject({ state: "BONDED" });
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
