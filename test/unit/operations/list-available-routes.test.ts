import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListAvailableRoutesRequestSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createListAvailableRoutes } from "../../../src/operations/list-available-routes.js";
import type { CachePolicy, CallContext } from "../../../src/operations/operation.js";

const SETTINGS = { mainnet: getBuiltInFeeSettings("mainnet"), goerli: getBuiltInFeeSettings("goerli") };

function setup({ hasCachedSettings }: { readonly hasCachedSettings: boolean }) {
  const policies: CachePolicy[] = [];
  const operation = createListAvailableRoutes({
    settings: {
      getCurrent: async (network) => SETTINGS[network],
      getCurrentOrBuiltIn: async (network) => SETTINGS[network],
      peek: (network) => (hasCachedSettings ? SETTINGS[network] : undefined),
    },
  });
  const context: CallContext = {
    requestId: "r",
    caller: "127.0.0.1",
    signal: new AbortController().signal,
    timeoutMs: undefined,
    addLogFields: () => {},
    setCachePolicy: (policy) => policies.push(policy),
    setResponseMetadata: () => {},
  };
  const list = (filter: object) => operation(create(ListAvailableRoutesRequestSchema, filter), context);
  return { list, policies };
}

test("returns synchronously with cached settings, and the same routes without", async () => {
  const cached = setup({ hasCachedSettings: true });
  const response = cached.list({ token: "eth" });
  expect(response).not.toBeInstanceOf(Promise);
  expect(await setup({ hasCachedSettings: false }).list({ token: "eth" })).toEqual(response);
  expect(cached.policies).toEqual([{ ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 }]);
});

test("returns the same frozen response for the same filter only", async () => {
  const { list } = setup({ hasCachedSettings: true });
  const all = await list({});
  expect(await list({ network: "mainnet" })).toBe(all);
  expect(await list({ token: "WETH" })).toBe(await list({ token: "eth" }));
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
