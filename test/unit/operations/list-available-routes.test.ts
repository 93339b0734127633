import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListAvailableRoutesRequestSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createListAvailableRoutes } from "../../../src/operations/list-available-routes.js";
import { createRecordingContext } from "./call-context.js";

const SETTINGS = { mainnet: getBuiltInFeeSettings("mainnet"), goerli: getBuiltInFeeSettings("goerli") };

function setup({ hasCachedSettings }: { readonly hasCachedSettings: boolean }) {
  const operation = createListAvailableRoutes({
    settings: {
      getCurrentOrBuiltIn: async (network) => SETTINGS[network],
      peek: (network) => (hasCachedSettings ? SETTINGS[network] : undefined),
    },
  });
  const { context, recorded } = createRecordingContext();
  const list = (filter: object) => operation(create(ListAvailableRoutesRequestSchema, filter), context);
  return { list, policies: recorded.cache };
}

test("returns synchronously with cached settings, and the same routes without", async () => {
  const cached = setup({ hasCachedSettings: true });
  const response = cached.list({ token: "eth" });
  expect(response).not.toBeInstanceOf(Promise);
  expect(await setup({ hasCachedSettings: false }).list({ token: "eth" })).toEqual(response);
  expect(cached.policies).toEqual([{ ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 }]);
});

test("returns the same frozen response for all names of the same filter only", async () => {
  const { list } = setup({ hasCachedSettings: true });
  const all = await list({});
  expect(await list({ network: "mainnet" })).toBe(all);
  expect(await list({ token: "WETH" })).toBe(await list({ token: "eth" }));
  expect(await list({ fromChain: "10", toChain: "BASE" })).toBe(await list({ fromChain: "optimism", toChain: "base" }));
  expect(await list({ fromChain: "base" })).not.toBe(await list({ toChain: "base" }));
  expect((await list({ network: "goerli" })).routes).not.toEqual(all.routes);
  expect(Object.isFrozen(all) && Object.isFrozen(all.routes) && all.routes.every(Object.isFrozen)).toBe(true);
});

test("rejects unknown tokens and chains", () => {
  const { list, policies } = setup({ hasCachedSettings: true });
  expect(() => list({ token: "NOPE" })).toThrow("NOPE");
  expect(() => list({ fromChain: "nowhere" })).toThrow("nowhere");
  expect(policies).toEqual([]);
});

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/** Returns the details of mainnet's route. */
async function getDetails(token: string, fromChain: string, toChain: string) {
  const { routes } = await setup({ hasCachedSettings: true }).list({ token, fromChain, toChain, view: "FULL" });
  return routes[0]?.details;
}

test("lists the contracts of the address book with view FULL, and the zero address for a chain's own coin", async () => {
  expect(await getDetails("USDT", "ethereum", "optimism")).toMatchObject({
    source: {
      tokenAddress: "0xdac17f958d2ee523a2206206994597c13d831ec7",
      hTokenAddress: "",
      bridgeAddress: "0x3e4a3a4796d16c0cd582c382691998f7c06420b6",
      ammAddress: "",
    },
    destination: {
      tokenAddress: "0x94b008aa00579c1307b0ef2c499ad98a8ce58e58",
      hTokenAddress: "0x2057c8ecb70afd7bee667d76b4cd373a325b1a20",
      bridgeAddress: "0x46ae9bab8cea96610807a275ebd36f8e916b5c61",
      ammAddress: "0x7d269d3e0d61a05a0ba976b7dbf8805bf844af3f",
    },
    decimals: 6,
  });
  expect((await getDetails("ETH", "optimism", "polygon"))?.source?.tokenAddress).toBe(ZERO_ADDRESS);
  expect((await getDetails("ETH", "optimism", "polygon"))?.destination?.tokenAddress).toMatch(/^0x7ceb23/);
  expect((await getDetails("DAI", "gnosis", "ethereum"))?.source?.tokenAddress).toBe(ZERO_ADDRESS);
  expect((await getDetails("MATIC", "polygon", "gnosis"))?.source?.tokenAddress).toBe(ZERO_ADDRESS);
  expect((await getDetails("HOP", "base", "linea"))?.source).toMatchObject({ ammAddress: "" });
  const usdc = await getDetails("USDC", "base", "ethereum");
  expect(usdc?.source).toMatchObject({
    hTokenAddress: "",
    bridgeAddress: "0xe7f40bf16ab09f4a6906ac2caa4094ad2da48cc2",
  });
  expect(usdc?.destination?.bridgeAddress).toBe("0x7e77461ca2a9d82d26fd5e0da2243bf72ea45747");
});

test("with view FULL returns the same routes, deeply frozen, and details only there", async () => {
  const { list } = setup({ hasCachedSettings: true });
  const basic = await list({ view: "BASIC" });
  const full = await list({ view: "FULL" });
  expect(basic).toBe(await list({}));
  expect(await list({ view: "FULL" })).toBe(full);
  expect(full.routes.map(({ details, ...route }) => route)).toEqual(basic.routes.map((route) => ({ ...route })));
  const parts = full.routes.flatMap(({ details }) => [details, details?.source, details?.destination]);
  expect(parts.every((part) => part !== undefined && Object.isFrozen(part))).toBe(true);
  expect(() => list({ view: "full" })).toThrow('view "full" is not one of BASIC, FULL');
});
