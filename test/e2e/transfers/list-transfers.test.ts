import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, inject, test, vi } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { startGatewayForTest, useGateway } from "../../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../../support/service/index-coverage.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Lists of transfers from an index over chains run by anvil.

const { transfers, chains } = inject("network");
const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
const TRANSPORTS = [
  ["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
  ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  [
    "Connect with JSON",
    (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ],
  ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
] as const;
const folder = useTemporaryFolder();
const gateway = useGateway(() => ({ INDEX: `sqlite:${join(folder(), "index")}`, INDEX_FROM: "2020-01-01" }));
let account = "";

type Transfer = { readonly transferId: string; readonly accountAddress: string; readonly timestamp: number } & Record<
  string,
  unknown
>;
interface Page {
  readonly transfers: readonly Transfer[];
  readonly nextPageToken: string;
  readonly coveredFrom: number;
  readonly coveredUntil: number;
}

async function list(query: string): Promise<Page> {
  const { status, body } = await gateway.get(`/v1/transfers?account=${account}&${query}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body as Page;
}

async function listAll(query: string): Promise<readonly Transfer[]> {
  const all: Transfer[] = [];
  let pageToken = "";
  do {
    const page = await list(`${query}&pageToken=${pageToken}`);
    all.push(...page.transfers);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return all;
}

beforeAll(async () => {
  const [first] = real;
  const { body } = await gateway.get(`/v1/transfer-status?transferHash=${first?.transactionHash}`);
  account = (body as Transfer).accountAddress;
  await waitUntilIndexed(gateway, chains);
});

test("lists every transfer of an account once, as its status, newest first", async () => {
  const listed = await listAll("pageSize=3");
  const keys = listed.map(({ transferId, transactionHash }) => `${transferId} ${String(transactionHash)}`);
  for (const { transferId, transactionHash } of real) expect(keys).toContain(`${transferId} ${transactionHash}`);
  const times = listed.map(({ timestamp }) => timestamp);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
  for (const transfer of listed) {
    const query = `transferId=${transfer.transferId}&transferHash=${String(transfer.transactionHash)}`;
    const { body } = await gateway.get(`/v1/transfer-status?${query}`);
    expect(transfer).toEqual(body);
  }
  expect(await listAll("pageSize=1000")).toEqual(listed);
});

test("filters by state, token and chains", async () => {
  const listed = await listAll("");
  for (const [query, matches] of [
    ["state=PENDING", ({ state }: Transfer) => state === "PENDING"],
    ["state=BONDED&token=weth", ({ state, token }: Transfer) => state === "BONDED" && token === "ETH"],
    ["fromChain=ethereum", ({ sourceChainSlug }: Transfer) => sourceChainSlug === "ethereum"],
    ["toChain=polygon", ({ destinationChainSlug }: Transfer) => destinationChainSlug === "polygon"],
  ] as const) {
    const expected = listed.filter(matches);
    expect(await listAll(`${query}&pageSize=2`)).toEqual(expected);
  }
});

test("adds details with view FULL, and the same over quotes once deliveries are measured", async () => {
  const { transfers: full } = await list("view=FULL&state=BONDED&pageSize=5");
  expect(full.length).toBeGreaterThan(0);
  for (const { transferId, transactionHash, details } of full) {
    const query = `transferId=${transferId}&transferHash=${String(transactionHash)}&view=FULL`;
    const { body } = await gateway.get(`/v1/transfer-status?${query}`);
    expect(details).toMatchObject({ substate: (body as { details: { substate: string } }).details.substate });
  }
  const bonded = (await listAll("state=BONDED")).find(({ token }) => token === "USDT");
  const { token, sourceChainSlug, destinationChainSlug } = bonded ?? ({} as Partial<Transfer>);
  const route = `token=${String(token)}&fromChain=${String(sourceChainSlug)}&toChain=${String(destinationChainSlug)}`;
  await vi.waitFor(
    async () => {
      const { body } = await gateway.get(`/v1/quote?amount=1000000000000000&slippage=1&view=FULL&${route}`);
      expect(body).toMatchObject({ details: { deliveryTime: { samples: expect.any(Number) } } });
      const { deliveryTime } = (body as { details: { deliveryTime: { samples: number } } }).details;
      expect(deliveryTime.samples).toBeGreaterThan(0);
    },
    { timeout: 60_000, interval: 500 },
  );
});

describe.each(TRANSPORTS)("over %s", (_, createTransport) => {
  test("has the same pages, tokens and errors as over GET", async () => {
    const client = createClient(BridgeService, createTransport(gateway.url));
    const page = await client.listTransfers({ account, pageSize: 2 });
    const expected = await list("pageSize=2");
    expect(page.transfers.map(({ transferId }) => transferId)).toEqual(
      expected.transfers.map((each) => each.transferId),
    );
    expect(page.nextPageToken).toBe(expected.nextPageToken);
    expect(Number(page.coveredFrom)).toBe(expected.coveredFrom);
    expect(Number(page.coveredUntil)).toBeLessThanOrEqual(expected.coveredUntil);
    expect(page.coveredUntil).toBeGreaterThanOrEqual(page.coveredFrom);
    const next = await client.listTransfers({ account, pageSize: 2, pageToken: page.nextPageToken });
    expect(next.transfers.map(({ transferId }) => transferId)).not.toContain(page.transfers[0]?.transferId);
    await expect(client.listTransfers({ account, network: "goerli" })).rejects.toMatchObject({ code: 9 });
    await expect(client.listTransfers({ account, pageToken: "x" })).rejects.toMatchObject({ code: 3 });
  });
});

describe("while no endpoint of a chain has ever answered", () => {
  const waiting = useGateway(() => ({
    INDEX: `sqlite:${join(folder(), "waiting")}`,
    INDEX_FROM: "2020-01-01",
    RPC_URL_OPTIMISM: "http://127.0.0.1:1",
  }));
  beforeAll(async () => {
    const narrow = "fromChain=ethereum&toChain=polygon";
    await vi.waitFor(
      async () => expect((await waiting.get(`/v1/transfers?account=${account}&${narrow}`)).status).toBe(200),
      { timeout: 60_000, interval: 200 },
    );
    // All others are read as well.
    await vi.waitFor(async () => expect((await refuse("")).message).toMatch(/^the index has not read optimism yet/), {
      ...{ timeout: 60_000, interval: 200 },
    });
  });

  async function refuse(query: string) {
    const { status, body } = await waiting.get(`/v1/transfers?account=${account}&${query}`);
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
    return body as { readonly message: string };
  }

  test("lists that it can touch are refused, and others tell which blocks were read", async () => {
    for (const query of ["fromChain=optimism", "toChain=optimism&fromChain=base", "fromChain=base", "token=DAI"])
      expect((await refuse(query)).message).toMatch(
        /^the index has not read optimism yet; fromChain and toChain narrow/,
      );
    const { body } = await waiting.get(`/v1/transfers?account=${account}&fromChain=ethereum&toChain=polygon`);
    const { coveredFrom, coveredUntil } = body as Page;
    expect(coveredFrom).toBeGreaterThan(1_600_000_000);
    expect(coveredUntil).toBeGreaterThanOrEqual(coveredFrom);
    expect(coveredUntil).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000));
  });
});

test("needs an index", async () => {
  const plain = await startGatewayForTest();
  const { status, body } = await plain.get(`/v1/transfers?account=${account}`);
  expect({ status, body }).toMatchObject({
    status: 400,
    body: { code: "failed_precondition", reason: "INDEX_REQUIRED" },
  });
});
