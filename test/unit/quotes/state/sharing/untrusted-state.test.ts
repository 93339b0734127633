import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import { createChainStateCache } from "../../../../../src/quotes/state/chain-state-cache.js";
import type { ReadSet } from "../../../../../src/quotes/state/read-set.js";
import { createUniswapTickWindow } from "../../../../../src/quotes/state/uniswap-tick-window.js";
import type { SharedState, TopicHandlers } from "../../../../../src/shared-state/shared-state.js";
import { closeAfterTest } from "../../../../support/close-after-test.js";

// What another process hands on is data from outside. The gas price of the chain is 1, that of the other process 7.

const polygon = getNetwork("mainnet").chains.get("polygon");
if (polygon === undefined) throw new Error("no polygon");
const chain = { ...polygon, multicallAddress: undefined };
const NOW = 1_795_000_000_000;
const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const READ_SET: ReadSet = {
  pools: new Map(),
  uintCalls: new Map(),
  optionalUintCalls: new Map(),
  deliveries: new Map(),
  tickWindows: new Map(),
  includesGasPrice: true,
};

const client: ChainClient = {
  slug: "polygon",
  send: async () => ({ number: "0x10", timestamp: "0x20" }),
  getLogs: () => Promise.reject(new Error("not expected")),
  sendBatch: async (calls) => calls.map(() => ({ result: "0x1" })),
};

const PUBLISHED = {
  block: ["16", "32"],
  readAt: NOW,
  readAtUnixSeconds: NOW / 1000,
  gasPrice: "7",
  pools: [],
  uints: [],
  optionalUints: [],
  deliveries: [],
  swapPools: [],
};

/** A cache whose reader is another process that replies with a text. */
function setup(reply: () => string | undefined = () => undefined) {
  const joined: TopicHandlers[] = [];
  let requests = 0;
  const sharedState: SharedState = {
    clock: { toShared: (time) => time, toMonotonic: (time) => time },
    join(_, handlers) {
      joined.push(handlers);
      return {
        isReader: () => false,
        publish() {},
        async request() {
          requests += 1;
          return reply();
        },
      };
    },
    observeReader() {},
    stats: () => ({
      topics: [],
      readTopics: [],
      messages: { published: 0, received: 0, answered: 0, unanswered: 0, dropped: 0 },
    }),
  };
  const cache = closeAfterTest(
    createChainStateCache({
      chain,
      client,
      clocks: { now: () => NOW, monotonicNow: () => NOW },
      sharing: { sharedState, topic: "topic", getTickWindow: createUniswapTickWindow },
    }),
  );
  return {
    publish: (more: object) => joined[0]?.onPublished(JSON.stringify({ ...PUBLISHED, ...more })),
    getGasPrice: async () => (await cache.subscribe("route", READ_SET, POLICY).get()).gasPrice,
    countRequests: () => requests,
  };
}

const IMPLAUSIBLE: readonly (readonly [string, object])[] = [
  ["was read ten minutes ago", { readAt: NOW - 601_000 }],
  ["has a block from the future", { block: ["16", String(NOW / 1000 + 3_601)] }],
  ["has a block number below the first", { block: ["-1", "32"] }],
  ["has a block number that no chain reaches", { block: ["9".repeat(30), "32"] }],
  ["has no block", { block: null }],
  ["has no gas price that is a number", { gasPrice: "0x7" }],
  ["has no time", { readAt: "now" }],
];

describe("state of another process", () => {
  test("is used at once by a route that is new here", async () => {
    const { publish, getGasPrice, countRequests } = setup();
    publish({ readAt: NOW - POLICY.maxAgeMs + 1 });
    expect(await getGasPrice()).toBe(7n);
    expect(countRequests()).toBe(0);
  });

  test("is not used by a new route if it is older than quotes may be", async () => {
    const { publish, getGasPrice, countRequests } = setup();
    publish({ readAt: NOW - POLICY.maxAgeMs - 1 });
    expect(await getGasPrice()).toBe(1n);
    expect(countRequests()).toBe(1);
  });

  test.each(IMPLAUSIBLE)("that %s is refused", (_, more) => {
    const { publish } = setup();
    expect(() => publish(more)).toThrow(TypeError);
  });

  test.each(IMPLAUSIBLE)("that %s is no answer to a request", async (_, more) => {
    const { getGasPrice } = setup(() => JSON.stringify([{ ...PUBLISHED, ...more }]));
    expect(await getGasPrice()).toBe(1n);
  });

  test.each([
    ["of another process", NOW, 7n],
    ["that is older than any quote may be", NOW - POLICY.maxStaleMs - 1, 1n],
  ])("%s in an answer", async (_, readAt, gasPrice) => {
    const { getGasPrice } = setup(() => JSON.stringify([{ ...PUBLISHED, readAt }]));
    expect(await getGasPrice()).toBe(gasPrice);
  });
});
