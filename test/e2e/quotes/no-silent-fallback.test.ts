import { describe, expect, inject, test } from "vitest";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest } from "../../support/service/in-process-gateway.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";
import { startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// After a failed read, the SDK continues with a constant or 0. That is correct if the call reverts, but silently wrong if
// the node did not respond.

const { chains } = inject("network");
type Fails = (method: string, data: string) => boolean;

const isEstimate = (method: string): boolean => method === "eth_estimateGas";
/** getL1Fee(bytes) of the OP gas price oracle. */
const isL1Fee = (method: string, data: string): boolean => method === "eth_call" && data.startsWith("0x49948e0e");
const rateLimited = { code: -32005, message: "limit exceeded" };
const revert = { code: 3, message: "execution reverted", data: "0x" };

const ETH_TO_OPTIMISM =
  "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=arbitrum&toChain=optimism&slippage=0.5";
const USDC_TO_OPTIMISM = "/v1/quote?amount=1000000000&token=USDC&fromChain=arbitrum&toChain=optimism&slippage=0.5";

/** Quotes while optimism's endpoint returns an error for one kind of call. */
async function quoteWith(engine: string, path: string, fails: Fails, error: unknown) {
  const proxy = await startRpcProxy(chains.optimism?.url ?? "", {
    override: ({ method, params: [call] }) =>
      fails(method, (call as { data?: string } | undefined)?.data ?? "") ? { error } : undefined,
  });
  closeAfterTest(proxy);
  const gateway = await startGatewayForTest({ RPC_URL_OPTIMISM: proxy.url, QUOTE_ENGINE: engine });
  return gateway.get(path);
}

const READS: readonly (readonly [string, Fails, string])[] = [
  ["the bond's gas", isEstimate, ETH_TO_OPTIMISM],
  ["the L1 fee", isL1Fee, ETH_TO_OPTIMISM],
  ["the gas of a CCTP delivery", isEstimate, USDC_TO_OPTIMISM],
];

describe.each(["snapshot", "sdk"])("a failed read of engine %s", (engine) => {
  test.each(READS)("fails the quote: %s", async (_, fails, path) => {
    const { status, body } = await quoteWith(engine, path, fails, rateLimited);
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
  });

  test.each(READS)("uses the SDK's constant if the call reverts: %s", async (_, fails, path) => {
    const usual = await quoteWith(engine, path, () => false, rateLimited);
    const { status, body } = await quoteWith(engine, path, fails, revert);
    expect(status).toBe(200);
    expect((body as { bonderFee: string }).bonderFee).not.toBe((usual.body as { bonderFee: string }).bonderFee);
  });

  test("fails the quote when the attestation source is down", async () => {
    const stub = await startHttpStub(() => {});
    await stub.close();
    const gateway = await startGatewayForTest({ ATTESTATION_API_URL: stub.url, QUOTE_ENGINE: engine });
    const { status, body } = await gateway.get(USDC_TO_OPTIMISM);
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
  });
});
