import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListAvailableRoutesRequestSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createListAvailableRoutes } from "../../../src/operations/list-available-routes.js";
import type { CachePolicy, CallContext } from "../../../src/operations/operation.js";

const settings = { mainnet: getBuiltInFeeSettings("mainnet"), goerli: getBuiltInFeeSettings("goerli") };

function routesWith(isAtHand: boolean) {
  const policies: CachePolicy[] = [];
  const operation = createListAvailableRoutes({
    settings: {
      getCurrent: async (network) => settings[network],
      getCurrentOrBuiltIn: async (network) => settings[network],
      peek: (network) => (isAtHand ? settings[network] : undefined),
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

test("routes come at once where the settings are at hand, and the same either way", async () => {
  const atHand = routesWith(true);
  const now = atHand.list({ token: "eth" });
  expect(now).not.toBeInstanceOf(Promise);
  expect(await routesWith(false).list({ token: "eth" })).toEqual(now);
  expect(atHand.policies).toEqual([{ ageSeconds: 0, maxAgeSeconds: 60, staleWhileRevalidateSeconds: 300 }]);
});

test("the same question has the same frozen answer, another one another", async () => {
  const { list } = routesWith(true);
  const all = await list({});
  expect(await list({ network: "mainnet" })).toBe(all);
  expect(await list({ token: "WETH" })).toBe(await list({ token: "eth" }));
  expect(await list({ fromChain: "base" })).not.toBe(await list({ toChain: "base" }));
  expect((await list({ network: "goerli" })).routes).not.toEqual(all.routes);
  expect(Object.isFrozen(all) && Object.isFrozen(all.routes) && all.routes.every(Object.isFrozen)).toBe(true);
});

test("filters are refused as they were where they name nothing", () => {
  const { list, policies } = routesWith(true);
  expect(() => list({ token: "NOPE" })).toThrow("NOPE");
  expect(() => list({ fromChain: "nowhere" })).toThrow("nowhere");
  expect(policies).toEqual([]);
});
