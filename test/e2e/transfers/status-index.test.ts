import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { useChainProxies } from "../../support/service/chain-proxies.js";
import { startGateway, type TestGateway, withGateway } from "../../support/service/in-process-gateway.js";
import { toRpcEnvironment } from "../../support/stubs/rpc-proxy.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// The service with an index over chains run by anvil: the index fills up, gives the same answers as the chains, and keeps
// giving them when the chains are down.

const { transfers } = inject("network");
const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
const unknownHash = `transferHash=0x${"12".repeat(32)}`;
const unknownId = `transferId=0x${"12".repeat(32)}`;
const folder = useTemporaryFolder();
const proxies = useChainProxies();
let environment: Record<string, string>;
let gateway: TestGateway;
/** The chains' responses, by query. */
const expected = new Map<string, unknown>();
/** The chains' details, by query. */
const expectedDetails = new Map<string, unknown>();
/** The chains' withdrawals, by query. */
const expectedWithdrawals = new Map<string, unknown>();

interface Details {
  readonly destination: { readonly timestamp: number };
  readonly estimatedDeliveryAt: number;
}

/** Leaves out finality, which comes with time, and the estimate, which only the index makes. */
const toComparable = (body: unknown): unknown =>
  JSON.parse(JSON.stringify((body as { details: unknown }).details), (name, value) =>
    name === "isFinal" || name === "estimatedDeliveryAt" ? undefined : value,
  );

/** Leaves out the time of a commit that may be made now. */
const withoutTime = (body: unknown): unknown => ({ ...(body as object), availableAt: undefined });

beforeAll(async () => {
  await withGateway({}, async (plain) => {
    for (const { transferId, transactionHash } of real) {
      const both = `transferId=${transferId}&transferHash=${transactionHash}`;
      const { body } = await plain.get(`/v1/transfer-status?${both}`);
      const { bondTransactionHash } = body as { bondTransactionHash: string };
      expected.set(both, body).set(`transferId=${transferId}`, body);
      if (bondTransactionHash !== "") expected.set(`transferHash=${bondTransactionHash}`, body);
      const full = await plain.get(`/v1/transfer-status?${both}&view=FULL`);
      expectedDetails.set(`${both}&view=FULL`, toComparable(full.body));
      expectedWithdrawals.set(both, withoutTime((await plain.get(`/v1/withdrawal?${both}`)).body));
    }
  });
  const index = { INDEX: `sqlite:${join(folder(), "index")}`, INDEX_FROM: "2020-01-01" };
  environment = { ...index, ...toRpcEnvironment(proxies) };
  gateway = await startGateway(environment);
  await vi.waitFor(() => expectAll(expected.keys()), { timeout: 60_000, interval: 500 });
});
afterAll(() => gateway.stop());

async function expectAll(queries: Iterable<string>): Promise<void> {
  for (const query of queries) {
    const { status, body, headers } = await gateway.get(`/v1/transfer-status?${query}`);
    const { otherTransferIds, ...rest } = body as Record<string, unknown>;
    expect({ query, status, source: headers.get("source") }).toEqual({ query, status: 200, source: "index" });
    expect({ query, ...rest, otherTransferIds: [] }).toEqual({
      query,
      ...(expected.get(query) as object),
      otherTransferIds: [],
    });
  }
}

test("withdrawals made of the index are those made of the logs", async () => {
  const states = new Set<string>();
  for (const [query, expectedBody] of expectedWithdrawals) {
    const { body } = await gateway.get(`/v1/withdrawal?${query}`);
    expect({ query, ...(withoutTime(body) as object) }).toEqual({ query, ...(expectedBody as object) });
    states.add((body as { state: string }).state);
  }
  expect([...states]).toEqual(expect.arrayContaining(["RECEIVED", "WAITING_FOR_COMMIT", "WITHDRAWABLE", "AUTOMATIC"]));
});

test("answers like the chains for every kind of query, without reading them", async () => {
  const statusReads = ["eth_getTransactionReceipt", "eth_call", "eth_getBlockByHash"];
  // The index reads blocks in which other tests send transactions: a round without any shows that no query needs them.
  await expect
    .poll(async () => {
      for (const proxy of proxies.values()) proxy.reset();
      await expectAll(expected.keys());
      const methods = new Set([...proxies.values()].flatMap((proxy) => [...proxy.calls().keys()]));
      return statusReads.filter((method) => methods.has(method));
    })
    .toEqual([]);
});

test("adds the details of the chains to indexed statuses", async () => {
  for (const [query, details] of expectedDetails) {
    const { body, headers } = await gateway.get(`/v1/transfer-status?${query}`);
    expect([query, headers.get("source"), toComparable(body)]).toEqual([query, "index", details]);
  }
});

test("estimates the delivery from the deliveries of the route", async () => {
  // The only transfer of its route.
  const { transferId } = real.find(({ name }) => name === "dai-gnosis-polygon") ?? {};
  const readDifference = async (): Promise<number> => {
    const { body } = await gateway.get(`/v1/transfer-status?transferId=${transferId}&view=FULL`);
    const { destination, estimatedDeliveryAt } = (body as { details: Details }).details;
    return estimatedDeliveryAt - destination.timestamp;
  };
  await expect.poll(readDifference).toBe(0);
});

test("searches only the newest logs of the chains for an ID that is not indexed", async () => {
  for (const proxy of proxies.values()) proxy.reset();
  const { status, body } = await gateway.get(`/v1/transfer-status?${unknownId}`);
  expect({ status, body }).toMatchObject({ status: 404, body: { reason: "TRANSFER_NOT_FOUND" } });
  const searches = [...proxies.values()].flatMap(({ requests }) => requests).flatMap(({ calls }) => calls);
  const ranges = searches
    .filter(({ method, params }) => method === "eth_getLogs" && JSON.stringify(params).includes("1212"))
    .map(({ params }) => Number((params[0] as { fromBlock: string }).fromBlock));
  expect(ranges.length).toBeGreaterThan(0);
  for (const from of ranges) expect(from).toBeGreaterThan(0);
});

test("still answers for delivered transfers, but not for pending ones, when the chains are down", async () => {
  for (const { behaviour } of proxies.values()) behaviour.errorStatus = 503;
  // Only all chains together can tell whether a nonce identifies one transfer.
  const bonded = [...expected]
    .filter(([query, body]) => (body as { bonded: boolean }).bonded && !/^transferId=[0-9]+$/.test(query))
    .map(([query]) => query);
  const pending = real.find(({ name }) => name === "eth-base-polygon");
  await expect
    .poll(async () => (await gateway.get(`/v1/transfer-status?transferId=${pending?.transferId}`)).body, {
      timeout: 30_000,
      interval: 1_000,
    })
    .toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  await expectAll(bonded);
  expect((await gateway.get(`/v1/transfer-status?${unknownHash}`)).status).toBe(503);

  // A new process does not need the chains for that either.
  await gateway.stop();
  gateway = await startGateway(environment);
  await expectAll(bonded);
  for (const { behaviour } of proxies.values()) behaviour.errorStatus = undefined;
});
