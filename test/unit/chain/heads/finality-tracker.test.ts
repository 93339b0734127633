import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { FinalityTracker } from "../../../../src/chain/heads/finality-tracker.js";
import { getHeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { RpcError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../../../src/errors.js";
import { UpstreamError } from "../../../../src/resilience/http-client/upstream-error.js";
import { createHeader } from "../support/log-chain-stub.js";

const never = new AbortController().signal;
const wall = 1_800_000_000_000;
const hourAgo = wall / 1000 - 3_600;
const unavailable = (cause: unknown) => new ServiceError("UPSTREAM_UNAVAILABLE", "down", { cause });

/** Creates a tracker of a chain that returns this finalized block. */
function setup(respond: (signal: AbortSignal) => unknown) {
  const state = { respond, reads: 0 };
  const client: ChainClient = {
    slug: "optimism",
    async send(method, params, signal) {
      expect([method, ...params]).toEqual(["eth_getBlockByNumber", "finalized", false]);
      state.reads += 1;
      return state.respond(signal);
    },
    sendBatch: () => Promise.reject(new Error("no batches")),
    getLogs: () => Promise.reject(new Error("no logs")),
  };
  const clock = { ms: 0 };
  const finality = new FinalityTracker(
    () => clock.ms,
    () => wall,
  );
  const isFinal = (number: number, timestamp?: number, signal = never) =>
    finality.isFinal(client, { number, timestamp }, signal);
  return { state, client, clock, finality, isFinal };
}

describe("isFinal", () => {
  test("reads the finalized block again after ten seconds, and only for later blocks", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(100));
    expect([await isFinal(100), await isFinal(101), await isFinal(99)]).toEqual([true, false, true]);
    expect(state.reads).toBe(1);
    clock.ms += 10_000;
    expect(await isFinal(100)).toBe(true);
    expect(state.reads).toBe(1);
    state.respond = () => createHeader(101);
    expect(await isFinal(101)).toBe(true);
    expect(state.reads).toBe(2);
  });

  test("uses what a client with the same cache key has read", async () => {
    const { isFinal, finality, state, client } = setup(() => createHeader(100));
    await isFinal(100);
    expect(await finality.isFinal({ ...client, heads: getHeadTracker(client) }, { number: 100 }, never)).toBe(true);
    expect(state.reads).toBe(1);
    expect(await finality.isFinal({ ...client }, { number: 100 }, never)).toBe(true);
    expect(state.reads).toBe(2);
  });

  test("keeps a block final when an endpoint lags or knows no finalized block", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(100));
    await isFinal(100);
    for (const say of [() => createHeader(50), () => null]) {
      clock.ms += 10_000;
      state.respond = say;
      expect(await isFinal(101, hourAgo)).toBe(false);
      expect(await isFinal(100)).toBe(true);
    }
  });

  test("forgets an unconfirmed finalized block after ten minutes", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(1_000));
    expect(await isFinal(500)).toBe(true);
    state.respond = () => createHeader(100);
    clock.ms += 5 * 60_000;
    expect(await isFinal(1_001)).toBe(false);
    clock.ms += 5 * 60_000 - 1;
    expect(await isFinal(500)).toBe(true);
    clock.ms += 1;
    expect([await isFinal(500), await isFinal(100)]).toEqual([false, true]);
  });

  test("forgets it after ten minutes also while the chain does not respond", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(1_000));
    await isFinal(500);
    state.respond = () => {
      throw unavailable(new UpstreamError("could not be reached"));
    };
    clock.ms += 10 * 60_000 - 1;
    expect(await isFinal(500)).toBe(true);
    clock.ms += 1;
    expect(await isFinal(500)).toBe(false);
  });

  test("keeps a block final while some endpoint confirms it now and then", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(1_000));
    await isFinal(500);
    clock.ms += 9 * 60_000;
    await isFinal(1_001);
    state.respond = () => createHeader(100);
    clock.ms += 9 * 60_000;
    expect([await isFinal(1_001), await isFinal(1_000)]).toEqual([false, true]);
  });

  test.each([
    ["null", () => null],
    [
      "an unknown block",
      () => {
        throw unavailable(new RpcError("refused", { kind: "not_found", numbers: [] }));
      },
    ],
    [
      "invalid parameters",
      () => {
        throw unavailable(new RpcError("refused", { kind: undefined, numbers: [] }));
      },
    ],
    [
      "400",
      () => {
        throw unavailable(new UpstreamError("answered 400", { status: 400 }));
      },
    ],
  ])("treats blocks older than an hour as final where the chain responds with %s", async (_, say) => {
    const { isFinal, state, clock } = setup(say);
    expect([await isFinal(5, hourAgo), await isFinal(5, hourAgo + 1), await isFinal(5)]).toEqual([true, false, false]);
    clock.ms += 9 * 60_000;
    await isFinal(5, hourAgo);
    expect(state.reads).toBe(1);
    clock.ms += 60_000;
    await isFinal(5, hourAgo);
    expect(state.reads).toBe(2);
  });

  test.each([
    ["is busy", unavailable(new RpcError("refused", { kind: "rate_limited", numbers: [] }))],
    ["is gone", unavailable(new UpstreamError("could not be reached"))],
    ["answers nonsense", undefined],
  ])("returns false without failing where the chain %s", async (_, error) => {
    const { isFinal, state } = setup(() => {
      if (error !== undefined) throw error;
      return "0x1";
    });
    expect(await isFinal(5, hourAgo)).toBe(false);
    expect(await isFinal(5, hourAgo)).toBe(false);
    expect(state.reads).toBe(1);
  });

  test("shares one read among concurrent callers, and reads again when the first has left", async () => {
    const leaving = new AbortController();
    const { isFinal, state } = setup(
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("left")))),
    );
    const both = [isFinal(5, hourAgo, leaving.signal), isFinal(6, hourAgo)];
    leaving.abort();
    expect(await Promise.all(both)).toEqual([false, false]);
    expect(state.reads).toBe(1);
    state.respond = () => createHeader(100);
    expect(await isFinal(5)).toBe(true);
  });

  test("keeps the state of custom endpoints separate", async () => {
    const { client, finality, state } = setup(() => createHeader(100));
    expect(await finality.isFinal(client, { number: 100 }, never)).toBe(true);
    state.respond = () => createHeader(5);
    expect(await finality.isFinal({ ...client }, { number: 100 }, never)).toBe(false);
  });
});
