import { afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { type ExplorerMode, type ExplorerStub, startExplorerStub } from "../../support/stubs/explorer-stub.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// Precedence of the sources, waiting for them, and caching.

const { chains, transfers } = inject("network");

const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
/** The responses from the chains alone, by transfer ID and hash. */
const expected = new Map<string, Record<string, unknown>>();
const open: { close(): Promise<void> }[] = [];
let gateway: TestGateway | undefined;

const queryOf = ({ transferId, transactionHash }: (typeof real)[number]): string =>
  `/v1/transfer-status?transferId=${transferId}&transferHash=${transactionHash}`;

function getSeeded(name: string): (typeof real)[number] {
  const transfer = real.find((seeded) => seeded.name === name);
  if (transfer === undefined) throw new Error(`no transfer ${name}`);
  return transfer;
}

beforeAll(async () => {
  const plain = await startGateway();
  for (const transfer of real) expected.set(queryOf(transfer), (await plain.get(queryOf(transfer))).body as never);
  await plain.stop();
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  await Promise.all(open.splice(0).map((resource) => resource.close()));
});

/** Returns the explorer's record of a transfer, with another price. */
function toRecord(status: Record<string, unknown>, priceUsd: number): Record<string, unknown> {
  const { state, otherTransferIds, amountUsd, bonderFeeUsd, ...same } = status;
  return { ...same, tokenPriceUsd: priceUsd, amountUsd: Number(status.amountFormatted) * priceUsd };
}

async function startExplorer(mode: ExplorerMode, priceUsd = 0.5): Promise<ExplorerStub> {
  const stub = await startExplorerStub([...expected.values()].map((status) => toRecord(status, priceUsd)));
  stub.mode = mode;
  open.push(stub);
  return stub;
}

async function startProxy(slug: string): Promise<RpcProxy> {
  const proxy = await startRpcProxy(chains[slug]?.url ?? "");
  open.push(proxy);
  return proxy;
}

/** Removes the fields that depend on the price. */
function withoutUsd(body: unknown): unknown {
  const { amountUsd, bonderFeeUsd, ...rest } = body as Record<string, unknown>;
  return rest;
}

describe.each(["healthy", "down", "slow", "hang", "foreign", "wrong-types", "html", "error", "endless"] as const)(
  "with an explorer that is %s",
  (mode) => {
    test("returns the status from the chains", async () => {
      const explorer = await startExplorer(mode);
      gateway = await startGateway({ EXPLORER_API_URL: explorer.url });
      for (const transfer of real) {
        const { status, body, headers } = await gateway.get(queryOf(transfer));
        expect({ status, body: withoutUsd(body) }).toEqual({
          status: 200,
          body: withoutUsd(expected.get(queryOf(transfer))),
        });
        expect(headers.get("source")).toBe("chain");
      }
      const unknown = `0x${"12".repeat(32)}`;
      for (const query of [`transferId=${unknown}`, `transferHash=${unknown}`]) {
        const { status, body } = await gateway.get(`/v1/transfer-status?${query}`);
        expect({ status, body }).toMatchObject({ status: 404, body: { reason: "TRANSFER_NOT_FOUND" } });
      }
    });
  },
);

describe("while a chain is down", () => {
  const transfer = getSeeded("usdt-polygon-arbitrum");

  test.each([
    ["the source", "polygon"],
    ["the destination", "arbitrum"],
  ])("returns the explorer's status when it is %s", async (_, slug) => {
    const [explorer, proxy] = await Promise.all([startExplorer("healthy"), startProxy(slug)]);
    proxy.behaviour.errorStatus = 503;
    const environment = { EXPLORER_API_URL: explorer.url, [`RPC_URL_${slug.toUpperCase()}`]: proxy.url };
    gateway = await startGateway(environment);
    const { status, body, headers } = await gateway.get(queryOf(transfer));
    expect({ status, body: withoutUsd(body) }).toEqual({
      status: 200,
      body: withoutUsd(expected.get(queryOf(transfer))),
    });
    expect(headers.get("source")).toBe("explorer");
    expect((body as { amountUsd: number }).amountUsd).toBeCloseTo(499.762513 / 2);
  });

  test.each(["down", "wrong-types", "hang"] as const)(
    "returns 503 rather than PENDING when the explorer is %s too",
    async (mode) => {
      const [explorer, proxy] = await Promise.all([startExplorer(mode), startProxy("arbitrum")]);
      proxy.behaviour.errorStatus = 503;
      gateway = await startGateway({ EXPLORER_API_URL: explorer.url, RPC_URL_ARBITRUM: proxy.url });
      const { status, body } = await gateway.get(queryOf(transfer));
      expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
      expect(JSON.stringify(body)).toContain("arbitrum");
    },
  );

  test("returns the explorer's status within the deadline when the chain hangs", async () => {
    const [explorer, proxy] = await Promise.all([startExplorer("healthy"), startProxy("arbitrum")]);
    proxy.behaviour.isHanging = true;
    gateway = await startGateway({
      EXPLORER_API_URL: explorer.url,
      RPC_URL_ARBITRUM: proxy.url,
      REQUEST_TIMEOUT_MS: "2000",
    });
    const { status, headers } = await gateway.get(queryOf(transfer));
    expect(status).toBe(200);
    expect(headers.get("source")).toBe("explorer");
  });

  test("finds a transfer by ID through the explorer's hint when one chain serves no logs", async () => {
    const [explorer, proxy] = await Promise.all([startExplorer("healthy"), startProxy("polygon")]);
    proxy.behaviour.override = ({ method }) =>
      method === "eth_getLogs" ? { error: { code: -32601, message: "the method is not served" } } : undefined;
    const environment = { RPC_URL_POLYGON: proxy.url };
    gateway = await startGateway(environment);
    const byId = `/v1/transfer-status?transferId=${transfer.transferId}`;
    expect((await gateway.get(byId)).body).toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    await gateway.stop();
    gateway = await startGateway({ ...environment, EXPLORER_API_URL: explorer.url });
    const { status, body, headers } = await gateway.get(byId);
    expect({ status, body: withoutUsd(body) }).toEqual({
      status: 200,
      body: withoutUsd(expected.get(queryOf(transfer))),
    });
    expect(headers.get("source")).toBe("chain");
  });
});
