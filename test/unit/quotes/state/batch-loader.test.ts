import { beforeEach, describe, expect, test, vi } from "vitest";
import { RpcError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../../../src/errors.js";
import { BatchLoader, loadJointly } from "../../../../src/quotes/state/batch-loader.js";

const START = 1_795_000_000_000;

beforeEach(() => void vi.useFakeTimers({ now: START }));

interface Key {
  readonly name: string;
}
const [a, b, c, d, e] = [..."abcde"].map((name): Key => ({ name })) as [Key, Key, Key, Key, Key];

/** A loader whose batches return their number; "rejects" is an error response of the node. */
function setup() {
  const state = {
    batches: [] as { readonly names: string; readonly atMs: number }[],
    rejects: "",
    isDown: false,
    maxKeys: 5,
  };
  const loader = new BatchLoader<Key, { readonly number: number }>(
    async (keys) => {
      const names = keys.map(({ name }) => name).join("");
      state.batches.push({ names, atMs: Date.now() - START });
      const number = state.batches.length;
      await Promise.resolve();
      if (state.isDown) throw new ServiceError("UPSTREAM_UNAVAILABLE", "down");
      const cause = new RpcError("error -32000");
      if (names.length > state.maxKeys || [...state.rejects].some((name) => names.includes(name)))
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `rejects ${names}`, { cause });
      return { number };
    },
    () => Date.now(),
  );
  /** Returns what each load gives: the number of its batch, or a message. */
  async function loadAll(keys: readonly Key[], ms = 0): Promise<(number | string)[]> {
    const outcomes = Promise.allSettled(keys.map((key) => loader.load(key)));
    await vi.advanceTimersByTimeAsync(ms);
    return (await outcomes).map((outcome) =>
      outcome.status === "fulfilled" ? outcome.value.number : outcome.reason.message,
    );
  }
  return { state, loader, loadAll, listBatches: () => state.batches.map(({ names }) => names) };
}

describe("loads", () => {
  test("of one turn are one batch, each key once, and later ones another", async () => {
    const { loadAll, listBatches } = setup();
    expect(await loadAll([a, b, a])).toEqual([1, 1, 1]);
    expect(await loadAll([a])).toEqual([2]);
    expect(listBatches()).toEqual(["ab", "a"]);
  });

  test("wait longer after each failure, up to a second, and not at all after a success", async () => {
    const { state, loadAll } = setup();
    state.isDown = true;
    for (const pauseMs of [0, 250, 500, 1_000, 1_000]) {
      const before = Date.now();
      expect(await loadAll([a], pauseMs)).toEqual(["down"]);
      expect((state.batches.at(-1)?.atMs ?? 0) + START - before).toBe(pauseMs);
    }
    state.isDown = false;
    await loadAll([a], 1_000);
    await loadAll([a]);
    expect(state.batches.at(-1)?.atMs).toBe(state.batches.at(-2)?.atMs);
    state.isDown = true;
    await loadAll([a]);
    await loadAll([a], 250);
    expect((state.batches.at(-1)?.atMs ?? 0) - (state.batches.at(-2)?.atMs ?? 0)).toBe(250);
  });

  test("that arrive during the pause join the next batch", async () => {
    const { state, loader, loadAll, listBatches } = setup();
    state.isDown = true;
    await loadAll([a]);
    state.isDown = false;
    const early = loader.load(a);
    await vi.advanceTimersByTimeAsync(249);
    const late = loader.load(b);
    await vi.advanceTimersByTimeAsync(1);
    expect(await early).toBe(await late);
    expect(listBatches()).toEqual(["a", "ab"]);
  });
});

describe("a batch that the node rejects", () => {
  test("is loaded key by key, and its good keys are not affected", async () => {
    const { state, loadAll, listBatches } = setup();
    state.rejects = "b";
    expect(await loadAll([a, b, c, d])).toEqual([2, "rejects b", 4, 5]);
    expect(listBatches()).toEqual(["abcd", "a", "b", "c", "d"]);
  });

  test("isolates its bad keys for ten seconds", async () => {
    const { state, loadAll, listBatches } = setup();
    state.rejects = "b";
    await loadAll([a, b, c]);
    state.batches.length = 0;
    await loadAll([a, b, c], 1_000);
    expect(listBatches().sort()).toEqual(["ac", "b"]);
    state.rejects = "";
    await vi.advanceTimersByTimeAsync(8_999);
    state.batches.length = 0;
    await loadAll([a, b]);
    await vi.advanceTimersByTimeAsync(1);
    await loadAll([a, b]);
    expect(listBatches()).toEqual(["a", "b", "ab"]);
  });

  test("whose first two keys are bad is given up, and begins with two others next time", async () => {
    const { state, loadAll, listBatches } = setup();
    state.rejects = "abcde";
    const message = "rejects abcde";
    expect(await loadAll([a, b, c, d, e])).toEqual(["rejects a", "rejects b", message, message, message]);
    expect(listBatches()).toEqual(["abcde", "a", "b"]);
    state.rejects = "ab";
    state.batches.length = 0;
    expect(await loadAll([a, b, c, d, e], 1_000)).toEqual(["rejects a", "rejects b", 2, 3, 4]);
    expect(listBatches()).toEqual(["abcde", "c", "d", "e", "a", "b"]);
  });

  test("of one key is not repeated, nor is one that the node did not answer", async () => {
    const { state, loadAll, listBatches } = setup();
    state.rejects = "a";
    expect(await loadAll([a])).toEqual(["rejects a"]);
    state.isDown = true;
    expect(await loadAll([b, c], 1_000)).toEqual(["down", "down"]);
    expect(listBatches()).toEqual(["a", "bc"]);
  });
});

describe("keys that are loaded jointly", () => {
  test("have the value of one batch", async () => {
    const { loader, listBatches } = setup();
    expect(await loadJointly(loader, [a, b])).toEqual({ number: 1 });
    expect(listBatches()).toEqual(["ab"]);
  });

  test.each([
    ["b", ["abc", "a", "b", "c", "ac"]],
    ["a", ["abc", "a", "b", "c", "bc"]],
  ])("have one without %s, which the node rejects, in a batch of the others", async (rejects, batches) => {
    const { state, loader, listBatches } = setup();
    state.rejects = rejects;
    const value = loadJointly(loader, [a, b, c]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await value).toEqual({ number: 5 });
    expect(listBatches()).toEqual(batches);
  });

  test("are loaded together twice at most, where the node accepts each key but not two of them", async () => {
    const { state, loader, listBatches } = setup();
    state.maxKeys = 1;
    const value = loadJointly(loader, [a, b]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await value).toEqual({ number: 5 });
    expect(listBatches()).toEqual(["ab", "a", "b", "ab", "a", "b"]);
  });

  test("fail if the node rejects all of them", async () => {
    const { state, loader } = setup();
    state.rejects = "ab";
    await expect(loadJointly(loader, [a, b])).rejects.toThrow("rejects a");
  });
});
