import { expect, test } from "vitest";
import { getTokenDecimals } from "../../../src/hop/tokens.js";
import { useGateway } from "../../support/service/in-process-gateway.js";

// The page converts amounts by decimals generated from the SDK: they must equal those of the service.

const gateway = useGateway();

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
