import { utils } from "ethers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { TOKEN_MESSENGERS, TOKEN_MINTERS } from "../../../src/hop/cctp.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// Circle lowers the burn limits of CCTP V1 until nothing can be sent. A proxy in front of optimism's node changes what
// Circle's contracts return there.

const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[] results)",
]);
type Inner = { readonly success: boolean; readonly returnData: string };
const toUint = (value: bigint): Inner => ({ success: true, returnData: `0x${value.toString(16).padStart(64, "0")}` });
const REVERTED: Inner = { success: false, returnData: "0x" };

let proxy: RpcProxy;
let gateway: TestGateway;

/** Changes the results of calls of a contract within multicalls. */
function replaceResults(results: Readonly<Record<string, Inner>>): void {
  const byTarget = new Map(Object.entries(results).map(([address, result]) => [address.toLowerCase(), result]));
  proxy.behaviour.override = ({ method, params: [call] }, result) => {
    const { data = "" } = (call ?? {}) as { data?: string };
    if (method !== "eth_call" || !data.startsWith(multicall.getSighash("aggregate3"))) return undefined;
    const { calls } = multicall.decodeFunctionData("aggregate3", data);
    const { results: inner } = multicall.decodeFunctionResult("aggregate3", result as string);
    const changed = (calls as { target: string }[]).map(({ target }, index) => {
      const { success, returnData } = inner[index];
      return byTarget.get(target.toLowerCase()) ?? { success, returnData };
    });
    return { result: multicall.encodeFunctionResult("aggregate3", [changed]) };
  };
}

const MINTER = TOKEN_MINTERS.optimism ?? "";
const MESSENGER = TOKEN_MESSENGERS.optimism ?? "";
const setLimit = (limit: bigint): void => replaceResults({ [MINTER]: toUint(limit) });

beforeAll(async () => {
  proxy = await startRpcProxy(inject("network").chains.optimism?.url ?? "");
});
afterAll(() => proxy.close());
beforeEach(async () => {
  gateway = await startGateway({ RPC_URL_OPTIMISM: proxy.url });
});
afterEach(async () => {
  await gateway.stop();
  proxy.behaviour.override = undefined;
});

const quotePath = (amount: bigint, token = "USDC", from = "optimism", to = "arbitrum"): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
const BATCH = "/v1/quotes?token=USDC&fromChain=optimism&toChain=arbitrum&toChain=base&slippage=0.5";
const CLOSED = {
  reason: "UNSUPPORTED_ROUTE",
  message: "Circle's CCTP V1 accepts no new transfers from optimism",
};

test("refuses routes from a chain on which nothing can be burnt, and only those", async () => {
  setLimit(0n);
  for (const token of ["USDC", "USDC.e"])
    expect(await gateway.get(quotePath(10n ** 7n, token))).toMatchObject({ status: 400, body: CLOSED });
  expect(await gateway.get(`${quotePath(10n ** 7n)}&view=FULL`)).toMatchObject({ status: 400, body: CLOSED });
  expect(await gateway.get(quotePath(10n ** 7n, "USDC", "arbitrum", "optimism"))).toMatchObject({ status: 200 });
  const { body } = await gateway.get(`${BATCH}&amount=10000000`);
  expect(body).toMatchObject({ results: [{ error: CLOSED }, { error: CLOSED }] });
  const routes = await gateway.get("/v1/available-routes?token=USDC&fromChain=optimism");
  expect(routes.body).toHaveLength(4);
});

test.each([
  ["cannot be read", { [MINTER]: REVERTED }],
  ["is that of a minter that was replaced", { [MINTER]: toUint(0n), [MESSENGER]: toUint(1n) }],
])("quotes while the limit %s", async (_, results) => {
  replaceResults(results);
  const { status, headers, body } = await gateway.get(`${quotePath(10n ** 14n)}&view=FULL`);
  expect({ status, body }).toMatchObject({
    status: 200,
    body: { details: { limits: { liquidityBasis: "UNKNOWN", isLiquidityAvailable: true, availableLiquidity: "" } } },
  });
  expect(headers.get("warning")).toBeNull();
});

/** An amount above the limit, and the limit. */
const AMOUNT = 5_000_001n;
const LIMIT = 5_000_000n;
const WARNING = `299 - "Circle's CCTP V1 burns no such amount in one transfer: USDC optimism>arbitrum 5000001 (limit 5000000)"`;

test("quotes an amount above the limit as before, with a warning", async () => {
  const { body: usual, headers: usualHeaders } = await gateway.get(quotePath(AMOUNT));
  expect(usualHeaders.get("warning")).toBeNull();
  await gateway.stop();
  gateway = await startGateway({ RPC_URL_OPTIMISM: proxy.url });
  setLimit(LIMIT);
  const { status, headers, body } = await gateway.get(quotePath(AMOUNT));
  expect(status).toBe(200);
  expect(body).toMatchObject({ estimatedReceived: (usual as { estimatedReceived: string }).estimatedReceived });
  expect(headers.get("warning")).toBe(WARNING);
  expect(headers.get("access-control-expose-headers")).toContain("Warning");

  expect((await gateway.get(quotePath(LIMIT))).headers.get("warning")).toBeNull();
  // The details say it themselves.
  const full = await gateway.get(`${quotePath(AMOUNT)}&view=FULL`);
  expect(full.headers.get("warning")).toBeNull();
  const limits = { liquidityBasis: "CCTP_BURN_LIMIT", isLiquidityAvailable: false, availableLiquidity: "5000000" };
  expect(full.body).toMatchObject({ details: { limits } });
});

test("warns of what a caller's own endpoint says", async () => {
  setLimit(LIMIT);
  await gateway.stop();
  gateway = await startGateway({ CUSTOM_RPC_URLS: "any" });
  const path = `${quotePath(AMOUNT)}&rpcUrl[optimism]=${proxy.url}`;
  expect((await gateway.get(path)).headers.get("warning")).toBe(WARNING);
  expect((await gateway.get(quotePath(AMOUNT))).headers.get("warning")).toBeNull();
});
