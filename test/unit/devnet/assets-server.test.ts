import { readFile } from "node:fs/promises";
import { sdkConfig } from "@hop-protocol/sdk/config";
import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AssetsServer, startAssetsServer } from "../../../devnet/assets-server.js";
import { attesters } from "../../../devnet/deploy/attestation.js";

describe("the assets server of the local network", () => {
  const now = 1_700_000_000_000;
  const unattested = utils.id("a message that is not attested");
  let server: AssetsServer;
  beforeAll(async () => {
    server = await startAssetsServer([unattested], () => now);
  });
  afterAll(() => server.stop());

  it("serves the SDK's built-in settings", async () => {
    const { bonders, bonderFeeBps, destinationFeeGasPriceMultiplier } = sdkConfig.mainnet;
    const { status, body } = await get("/mainnet/v1-core-config.json?cb=1");
    expect(status).toBe(200);
    expect(body).toMatchObject({ bonders, bonderFeeBps, destinationFeeGasPriceMultiplier });
    expect(body).toMatchObject({ relayerFeeEnabled: { arbitrum: true }, bridgeDeprecated: { SNX: true } });
    expect((await get("/goerli/v1-core-config.json")).body).toHaveProperty("bonderFeeBps");
  });

  it("serves the prices of the recorded quotes with the current time", async () => {
    const recorded = new URL("../../golden/quotes.json", import.meta.url);
    const { inputs } = JSON.parse(await readFile(recorded, "utf8")) as { inputs: { pricesUsd: unknown } };
    const { body } = await get("/token-prices.json");
    expect(body).toEqual({ timestamp: now, prices: inputs.pricesUsd });
  });

  it("serves liquidity on every route that has a bonder", async () => {
    const { body } = await get("/mainnet/v1-available-liquidity.json");
    expect(body).toMatchObject({ timestamp: now, data: { USDC: { cctpEnabled: true } } });
    const credit = expect.stringMatching(/^[1-9][0-9]{24,}$/);
    expect(body).toMatchObject({ data: { ETH: { baseAvailableCredit: { polygon: { ethereum: credit } } } } });
  });

  it("returns an attestation with the signatures of all attesters for any message", async () => {
    const hash = utils.id("a message");
    const { status, body } = await get(`/v1/attestations/${hash}`);
    expect(status).toBe(200);
    const { attestation } = body as { attestation: string };
    const signatures = attesters.map((_, index) => utils.hexDataSlice(attestation, index * 65, (index + 1) * 65));
    expect(signatures.map((signature) => utils.recoverAddress(hash, signature))).toEqual(attesters);
    expect(utils.hexDataLength(attestation)).toBe(attesters.length * 65);
  });

  it("returns that an attestation is pending for the messages that it does not attest", async () => {
    const { status, body } = await get(`/v1/attestations/${unattested}`);
    expect({ status, body }).toEqual({
      status: 200,
      body: { attestation: "PENDING", status: "pending_confirmations" },
    });
  });

  it("returns 404 as JSON for any other path", async () => {
    for (const path of ["/", "/v1/attestations/0x12", "/mainnet", "/__proto__", "/constructor"]) {
      expect(await get(path)).toEqual({ status: 404, body: { error: "not found" } });
    }
  });

  async function get(path: string): Promise<{ status: number; body: unknown }> {
    const response = await fetch(server.url + path);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    return { status: response.status, body: await response.json() };
  }
});
