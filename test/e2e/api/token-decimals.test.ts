import { afterAll, beforeAll, expect, test } from "vitest";
import { getTokenDecimals } from "../../../src/hop/tokens.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";

// The page converts amounts by decimals generated from the SDK: they must equal those of the service.

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway?.stop());

test.each(["mainnet", "goerli"])(
  "the page knows the decimals of every token of %s, as the service does",
  async (network) => {
    const routes = (await gateway.get(`/v1/available-routes?network=${network}`)).body as readonly { token: string }[];
    const decimals = (await gateway.get("/assets/tokens.json")).body as Readonly<Record<string, number>>;
    const tokens = [...new Set(routes.map(({ token }) => token))];
    expect(tokens.length).toBeGreaterThan(0);
    const known = tokens.map((token) => [token, decimals[token]]);
    expect(known).toEqual(tokens.map((token) => [token, getTokenDecimals(token)]));
  },
);
