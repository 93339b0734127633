import { describe, expect, test } from "vitest";
import { FinalityTracker } from "../../../../src/chain/heads/finality-tracker.js";
import { getHeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { RpcError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../../../src/errors.js";
import { UpstreamError } from "../../../../src/resilience/http-client/upstream-error.js";
import { createClientStub, createHeader } from "../support/log-chain-stub.js";
import { never } from "../support/rpc-node-stub.js";

const MINUTE = 60_000;
const wall = 1_800_000_000_000;
const hourAgo = wall / 1000 - 3_600;

/** Rejects a read as a client does when no endpoint has responded. */
const fail = (cause: unknown) => (): never => {
  throw new ServiceError("UPSTREAM_UNAVAILABLE", "down", { cause });
};
const failAs = (kind: "not_found" | "rate_limited" | undefined) => fail(new RpcError("refused", { kind, numbers: [] }));
const unreachable = fail(new UpstreamError("could not be reached"));

/** Creates a tracker of a chain that returns this finalized block. */
function setup(respond: (signal: AbortSignal) => unknown) {
  const state = { respond, reads: 0 };
  const client = createClientStub({
    async send(method, params, signal) {
      expect([method, ...params]).toEqual(["eth_getBlockByNumber", "finalized", false]);
      state.reads += 1;
      return state.respond(signal);
    },
  });
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

  test("uses what a client with the same heads has read, and not what another one has", async () => {
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
    clock.ms += 5 * MINUTE;
    expect(await isFinal(1_001)).toBe(false);
    clock.ms += 5 * MINUTE - 1;
    expect(await isFinal(500)).toBe(true);
    clock.ms += 1;
    expect([await isFinal(500), await isFinal(100)]).toEqual([false, true]);
  });

  test("forgets it after ten minutes also while the chain does not respond", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(1_000));
    await isFinal(500);
    state.respond = unreachable;
    clock.ms += 10 * MINUTE - 1;
    expect(await isFinal(500)).toBe(true);
    clock.ms += 1;
    expect(await isFinal(500)).toBe(false);
  });

  test("keeps a block final while some endpoint confirms it now and then", async () => {
    const { isFinal, state, clock } = setup(() => createHeader(1_000));
    await isFinal(500);
    clock.ms += 9 * MINUTE;
    await isFinal(1_001);
    state.respond = () => createHeader(100);
    clock.ms += 9 * MINUTE;
    expect([await isFinal(1_001), await isFinal(1_000)]).toEqual([false, true]);
  });

  test.each([
    ["null", () => null],
    ["an unknown block", failAs("not_found")],
    ["invalid parameters", failAs(undefined)],
    ["400", fail(new UpstreamError("answered 400", { status: 400 }))],
  ])("treats blocks older than an hour as final where the chain responds with %s", async (_, say) => {
    const { isFinal, state, clock } = setup(say);
    expect([await isFinal(5, hourAgo), await isFinal(5, hourAgo + 1), await isFinal(5)]).toEqual([true, false, false]);
    clock.ms += 9 * MINUTE;
    await isFinal(5, hourAgo);
    expect(state.reads).toBe(1);
    clock.ms += MINUTE;
    await isFinal(5, hourAgo);
    expect(state.reads).toBe(2);
  });

  test.each([
    ["is busy", failAs("rate_limited")],
    ["is gone", unreachable],
    ["answers nonsense", () => "0x1"],
  ])("returns false without failing where the chain %s", async (_, say) => {
    const { isFinal, state } = setup(say);
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
});
