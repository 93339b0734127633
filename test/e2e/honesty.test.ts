import { afterAll, describe, expect, inject, test } from "vitest";
import { startGateway } from "../support/gateway.js";
import { answerJson, type HttpStub, readBody, startHttpStub } from "../support/http-stub.js";

// The SDK goes on with a constant or 0 where a read fails. That is right where the node says that the call reverts,
// and a silently wrong number where the node said nothing.

const { chains } = inject("network");
const stubs: HttpStub[] = [];
afterAll(() => Promise.all(stubs.map((stub) => stub.close())));

/** A chain's endpoint that answers one kind of call with an error. */
async function chainFailing(slug: string, fails: (method: string, data: string) => boolean, error: unknown) {
  const stub = await startHttpStub(async (request, response) => {
    const text = await readBody(request);
    const { id, method, params } = JSON.parse(text);
    if (fails(method, params[0]?.data ?? "")) return answerJson(response, { jsonrpc: "2.0", id, error });
    const upstream = await fetch(chains[slug]?.url ?? "", {
      method: "POST",
      body: text,
      headers: { "content-type": "application/json" },
    });
    response.end(await upstream.text());
  });
  stubs.push(stub);
  return stub.url;
}

const isEstimate = (method: string): boolean => method === "eth_estimateGas";
/** getL1Fee(bytes) of the OP gas price oracle. */
const isL1Fee = (method: string, data: string): boolean => method === "eth_call" && data.startsWith("0x49948e0e");
const busy = { code: -32005, message: "limit exceeded" };
const reverts = { code: 3, message: "execution reverted", data: "0x" };

const ethToOptimism = "/v1/quote?amount=1000000000000000000&token=ETH&fromChain=arbitrum&toChain=optimism&slippage=0.5";
const usdcToOptimism = "/v1/quote?amount=1000000000&token=USDC&fromChain=arbitrum&toChain=optimism&slippage=0.5";

async function quoteOver(rpcUrl: string, path: string) {
  const gateway = await startGateway({ RPC_URL_OPTIMISM: rpcUrl });
  try {
    return await gateway.get(path);
  } finally {
    await gateway.stop();
  }
}

describe("a read that fails below the SDK", () => {
  test.each([
    ["the bond's gas", isEstimate, ethToOptimism],
    ["the L1 fee", isL1Fee, ethToOptimism],
    ["the gas of a CCTP delivery", isEstimate, usdcToOptimism],
  ])("is no quote: %s", async (_, fails, path) => {
    const { status, body } = await quoteOver(await chainFailing("optimism", fails, busy), path);
    expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
  });

  test.each([
    ["the bond's gas", isEstimate, ethToOptimism],
    ["the L1 fee", isL1Fee, ethToOptimism],
    ["the gas of a CCTP delivery", isEstimate, usdcToOptimism],
  ])("is the SDK's own constant where the node says that it reverts: %s", async (_, fails, path) => {
    const well = await quoteOver(chains.optimism?.url ?? "", path);
    const { status, body } = await quoteOver(await chainFailing("optimism", fails, reverts), path);
    expect(status).toBe(200);
    expect((body as { bonderFee: string }).bonderFee).not.toBe((well.body as { bonderFee: string }).bonderFee);
  });

  test("is no quote when the attestation source is down", async () => {
    const gone = await startHttpStub(() => {});
    await gone.close();
    const gateway = await startGateway({ ATTESTATION_API_URL: gone.url });
    try {
      const { status, body } = await gateway.get(usdcToOptimism);
      expect({ status, body }).toMatchObject({ status: 503, body: { reason: "UPSTREAM_UNAVAILABLE" } });
    } finally {
      await gateway.stop();
    }
  });
});
