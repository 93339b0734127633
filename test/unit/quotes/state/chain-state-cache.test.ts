import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ChainClient, RpcCall, RpcOutcome } from "../../../../src/chain/chain-client.js";
import { RpcError } from "../../../../src/chain/json-rpc/rpc-codec.js";
import { ServiceError } from "../../../../src/errors.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import { createChainStateCache } from "../../../../src/quotes/state/chain-state-cache.js";
import type { ReadSet } from "../../../../src/quotes/state/read-set.js";

const polygon = getNetwork("mainnet").chains.get("polygon");
if (polygon === undefined) throw new Error("no polygon");
const chain = { ...polygon, multicallAddress: undefined };
const needs: ReadSet = {
  pools: new Map(),
  uintCalls: new Map(),
  deliveries: new Map(),
  tickWindows: new Map(),
  includesGasPrice: true,
};
const pace = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };

beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const word = (quantity: string): string => `0x${quantity.slice(2).padStart(64, "0")}`;

/** A chain whose gas price is the number of the read; each read takes `takesMs`, and fails while `isDown`. */
function setup() {
  const state = {
    isDown: false,
    takesMs: 50,
    reads: 0,
    refuses: (_: readonly RpcCall[]) => false,
    /** Which calls give nothing. */
    empties: (_: RpcCall) => false,
    block: "0x10",
    wallOffset: 0,
  };
  const client: ChainClient = {
    slug: "polygon",
    send: async () => ({ number: state.block, timestamp: "0x20" }),
    getLogs: () => Promise.reject(new Error("not asked")),
    async sendBatch(calls): Promise<readonly RpcOutcome[]> {
      state.reads += 1;
      const result = `0x${state.reads.toString(16)}`;
      const { isDown, takesMs } = state;
      await new Promise((resolve) => setTimeout(resolve, takesMs));
      if (isDown) throw new Error("down");
      const cause = new RpcError("answered JSON-RPC error -32000");
      if (state.refuses(calls)) throw new ServiceError("UPSTREAM_UNAVAILABLE", "no endpoint", { cause });
      return calls.map((call) => ({
        result: state.empties(call) ? "0x" : call.method === "eth_call" ? word(result) : result,
      }));
    },
  };
  const facts = createChainStateCache({
    chain,
    client,
    clocks: { now: () => Date.now() + state.wallOffset, monotonicNow: () => Date.now() },
  });
  return { state, facts };
}

/** Lets time pass until a question is answered. */
async function answer(asked: ChainState | Promise<ChainState>, ms = 60): Promise<bigint | undefined> {
  const settled = Promise.resolve(asked).then((facts) => facts.gasPrice);
  settled.catch(() => {});
  await vi.advanceTimersByTimeAsync(ms);
  return settled;
}

describe("facts that are asked for", () => {
  test("are read once for all who ask at once, and then at hand", async () => {
    const { state, facts } = setup();
    const one = facts.subscribe("a", needs, pace);
    const first = [
      one.get(),
      one.get(),
      facts.subscribe("a", needs, pace).get(),
      facts.subscribe("b", needs, pace).get(),
    ];
    expect(await Promise.all(first.map((each) => answer(each)))).toEqual([1n, 1n, 1n, 1n]);
    expect(state.reads).toBe(1);
    expect(one.get()).not.toBeInstanceOf(Promise);
    facts.close();
  });

  test("are read again at their pace as long as somebody asks, and then no more", async () => {
    const { state, facts } = setup();
    const watched = facts.subscribe("a", needs, pace);
    await answer(watched.get());
    for (let second = 0; second < 20; second++) {
      await vi.advanceTimersByTimeAsync(1_000);
      const now = watched.get();
      if (now instanceof Promise) throw new Error("a quote had to wait");
      expect(Date.now() - now.readAt).toBeLessThan(4_000);
    }
    expect(state.reads).toBeGreaterThanOrEqual(10);
    expect(state.reads).toBeLessThanOrEqual(11);
    await vi.advanceTimersByTimeAsync(20_000);
    const { reads } = state;
    await vi.advanceTimersByTimeAsync(600_000);
    expect(state.reads).toBe(reads);
    expect(vi.getTimerCount()).toBe(0);
    // And again, as if for the first time.
    expect(await answer(watched.get())).toBe(BigInt(reads + 1));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state.reads).toBe(reads + 2);
    facts.close();
  });

  test("of several routes come to be read together", async () => {
    const { state, facts } = setup();
    const [one, other] = [facts.subscribe("a", needs, pace), facts.subscribe("b", needs, pace)];
    await answer(one.get());
    await vi.advanceTimersByTimeAsync(700);
    await answer(other.get());
    const before = state.reads;
    for (let second = 0; second < 10; second++) {
      one.get();
      other.get();
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(state.reads - before).toBeLessThanOrEqual(6);
    facts.close();
  });

  test("that have grown old are read anew before they are given", async () => {
    const { facts } = setup();
    const watched = facts.subscribe("a", needs, pace);
    await answer(watched.get());
    await vi.advanceTimersByTimeAsync(25_000);
    const asked = watched.get();
    expect(asked).toBeInstanceOf(Promise);
    expect(Date.now() - (await Promise.all([asked, vi.advanceTimersByTimeAsync(60)]))[0].readAt).toBeLessThan(100);
    facts.close();
  });
});

describe("while the chain does not answer", () => {
  test("the last facts are given without a wait until they are too old, and nothing after", async () => {
    const { state, facts } = setup();
    const watched = facts.subscribe("a", needs, pace);
    await answer(watched.get());
    state.isDown = true;
    for (let second = 1; second < 29; second++) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(watched.get(), `after ${second} s`).not.toBeInstanceOf(Promise);
    }
    await vi.advanceTimersByTimeAsync(2_000);
    await expect(answer(watched.get(), 1_100)).rejects.toThrow("down");
    state.isDown = false;
    await answer(watched.get(), 1_100);
    const now = watched.get();
    if (now instanceof Promise) throw new Error("it has not recovered");
    expect(Date.now() - now.readAt).toBeLessThanOrEqual(1_100);
    facts.close();
  });

  test("a read that hangs is not waited for longer than older facts allow", async () => {
    const { state, facts } = setup();
    const watched = facts.subscribe("a", needs, pace);
    await answer(watched.get());
    await vi.advanceTimersByTimeAsync(20_000);
    const last = BigInt(state.reads);
    state.takesMs = 60_000;
    const asked = Promise.resolve(watched.get());
    let given: ChainState | undefined;
    void asked.then((each) => {
      given = each;
    });
    await vi.advanceTimersByTimeAsync(900);
    expect(given).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);
    expect(given?.gasPrice).toBe(last);
    facts.close();
  });

  test("many questions make few reads", async () => {
    const { state, facts } = setup();
    state.isDown = true;
    state.takesMs = 1;
    const watched = facts.subscribe("a", needs, pace);
    let refused = 0;
    for (let ms = 0; ms < 1_000; ms++) {
      Promise.resolve(watched.get()).catch(() => {
        refused += 1;
      });
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(1_100);
    expect(refused).toBe(1_000);
    expect(state.reads).toBeLessThanOrEqual(6);
    facts.close();
  });
});

/** Needs with a delivery of this name too. */
function needing(name: string): ReadSet {
  const delivery = {
    from: undefined,
    to: "0x",
    encodeCalldata: () => "0xbad",
    fallbackGas: 1n,
    gasMargin: 0n,
    hasL1Fee: false,
  };
  return { ...needs, deliveries: new Map([[name, delivery]]) };
}

test("a call that the node refuses is the trouble of the routes that need it alone", async () => {
  const { state, facts } = setup();
  const refused = facts.subscribe("refused", needing("odd"), pace);
  const usual = facts.subscribe("usual", needs, pace);
  state.refuses = (calls) => calls.some(({ method }) => method === "eth_estimateGas");
  const both = Promise.allSettled([refused.get(), usual.get()]);
  await vi.advanceTimersByTimeAsync(110);
  const [bad, good] = await both;
  expect(bad).toMatchObject({ status: "rejected", reason: { message: "no endpoint" } });
  expect(good).toMatchObject({ status: "fulfilled", value: { gasPrice: 3n } });
  expect(usual.get()).not.toBeInstanceOf(Promise);
  facts.close();
});

test("a route of which a call was refused is read apart for a while", async () => {
  const { state, facts } = setup();
  const refused = facts.subscribe("refused", needing("odd"), pace);
  const usual = facts.subscribe("usual", needs, pace);
  state.refuses = (calls) => calls.some(({ method }) => method === "eth_estimateGas");
  Promise.resolve(refused.get()).catch(() => {});
  for (let second = 0; second < 10; second++) {
    Promise.resolve(usual.get()).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
  }
  // Three reads find it out; then each of the two is read every two seconds, where together they would take three.
  expect(state.reads).toBeLessThanOrEqual(3 + 5 * 2);
  facts.close();
});

test("several routes of which calls are refused do not keep the others from their facts", async () => {
  const { state, facts } = setup();
  const refused = ["a", "b"].map((name) => facts.subscribe(`refused ${name}`, needing(name), pace));
  const usual = ["c", "d", "e"].map((name) => facts.subscribe(name, needs, pace));
  state.refuses = (calls) => calls.some(({ method }) => method === "eth_estimateGas");
  for (let second = 0; second < 10; second++) {
    for (const each of [...refused, ...usual]) Promise.resolve(each.get()).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
  }
  for (const each of usual) expect(each.get()).not.toBeInstanceOf(Promise);
  facts.close();
});

test("where the node refuses everything, few find it out", async () => {
  const { state, facts } = setup();
  state.refuses = () => true;
  const many = Array.from({ length: 50 }, (_, index) => facts.subscribe(`route ${index}`, { ...needs }, pace));
  const asked = Promise.allSettled(many.map((each) => each.get()));
  await vi.advanceTimersByTimeAsync(200);
  expect((await asked).every(({ status }) => status === "rejected")).toBe(true);
  expect(state.reads).toBe(3);
  facts.close();
});

test("an older block does not replace a newer one that is still good", async () => {
  const { state, facts } = setup();
  const watched = facts.subscribe("a", needs, pace);
  await answer(watched.get());
  state.block = "0xf";
  await vi.advanceTimersByTimeAsync(2_100);
  expect(watched.get()).toMatchObject({ block: { number: 16n } });
  await vi.advanceTimersByTimeAsync(2_000);
  await Promise.all([watched.get(), vi.advanceTimersByTimeAsync(100)]);
  expect(watched.get()).toMatchObject({ block: { number: 15n } });
  facts.close();
});

test("a watcher with a faster pace is kept fresh beside a slower one", async () => {
  const { state, facts } = setup();
  const slow = facts.subscribe("slow", needs, { refreshMs: 12_000, maxAgeMs: 24_000, maxStaleMs: 30_000 });
  await answer(slow.get());
  const fast = facts.subscribe("fast", needs, pace);
  await answer(fast.get());
  for (let second = 0; second < 10; second++) {
    await vi.advanceTimersByTimeAsync(1_000);
    expect(fast.get(), `after ${second} s`).not.toBeInstanceOf(Promise);
  }
  expect(state.reads).toBeLessThan(9);
  facts.close();
});

test("a wall clock that is set back changes nothing", async () => {
  const { state, facts } = setup();
  const watched = facts.subscribe("a", needs, pace);
  await answer(watched.get());
  state.wallOffset = -3_600_000;
  for (let second = 0; second < 10; second++) {
    await vi.advanceTimersByTimeAsync(1_000);
    const now = watched.get();
    if (now instanceof Promise) throw new Error("a quote had to wait");
    expect(Date.now() - now.readAt).toBeLessThan(4_000);
  }
  expect(state.reads).toBeGreaterThan(4);
  facts.close();
});

test("close ends what goes on in the background", async () => {
  const { state, facts } = setup();
  await answer(facts.subscribe("a", needs, pace).get());
  facts.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(state.reads).toBe(1);
});

describe("facts that lack what is needed", () => {
  const name = "a number";
  const numbered = { ...needs, uintCalls: new Map([[name, { to: `0x${"a1".repeat(20)}`, data: "0x12345678" }]]) };

  test("take no older facts' place, and are a failure where there are none", async () => {
    const { state, facts } = setup();
    state.empties = () => true;
    const cold = facts.subscribe("a", numbered, pace);
    await expect(answer(cold.get())).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    state.empties = () => false;
    const first = await answer(cold.get(), 400);
    state.empties = ({ method }) => method === "eth_call";
    await vi.advanceTimersByTimeAsync(pace.maxAgeMs + 1);
    expect(await answer(cold.get())).toBe(first);
    const kept = cold.get();
    if (kept instanceof Promise) throw new Error("not at hand");
    expect(kept.getUint(name)).toBe(first);
    facts.close();
  });
});
