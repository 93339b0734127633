import { describe, expect, test } from "vitest";
import type { ChainClient, RpcCall, RpcOutcome } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/revert-error.js";
import { findUsdcSwapPool } from "../../../../src/hop/usdc-swap-pools.js";
import { SwapRevertError } from "../../../../src/quotes/math/swap-revert-error.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import { createUsdcSwapQuoter } from "../../../../src/quotes/state/usdc-swap-quoter.js";

const swap = findUsdcSwapPool("polygon");
if (swap === undefined) throw new Error("USDC.e is swapped on polygon");

const amountOf = ({ params: [call] }: RpcCall): bigint =>
  BigInt(`0x${(call as { data: string }).data.slice(10 + 64, 10 + 128)}`);
const half = (call: RpcCall): RpcOutcome => ({ result: `0x${(amountOf(call) / 2n).toString(16).padStart(64, "0")}` });

/** A quoter that gives half; every request waits to be let through. */
function setup(answer: (call: RpcCall) => RpcOutcome = half) {
  const requests: { readonly amounts: readonly bigint[]; answer(): void; fail(): void }[] = [];
  const client: ChainClient = {
    slug: "polygon",
    send: () => Promise.reject(new Error("not asked")),
    getLogs: () => Promise.reject(new Error("not asked")),
    sendBatch: (calls) =>
      new Promise((resolve, reject) => {
        requests.push({
          amounts: calls.map(amountOf),
          answer: () => resolve(calls.map(answer)),
          fail: () => reject(new Error("down")),
        });
      }),
  };
  const clock = { time: 1_795_000_000_000 };
  const { signal } = new AbortController();
  const swaps = createUsdcSwapQuoter({
    client,
    pool: swap as NonNullable<typeof swap>,
    maxAgeMs: 4_000,
    now: () => clock.time,
    signal,
  });
  return { requests, clock, swaps };
}

const by = { caller: "a" };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function factsWhose(amountOut: (amountIn: bigint) => bigint | undefined): ChainState {
  const unused = (): never => {
    throw new Error("not asked");
  };
  return {
    block: { number: 1n, timeSeconds: 1n },
    readAtUnixSeconds: 0,
    readAt: 1_794_999_999_000,
    gasPrice: undefined,
    getPool: unused,
    getUint: unused,
    getDeliveryGasCost: unused,
    findUniswapSwap: (pool) => (pool === swap?.address ? amountOut : undefined),
  };
}

describe("a swap of USDC.e", () => {
  test("that the facts tell of takes no call and is as old as they are", () => {
    const { requests, swaps } = setup();
    expect(
      swaps.quoteAmountOut(
        10n,
        by,
        factsWhose((amountIn) => amountIn - 1n),
      ),
    ).toEqual({ amountOut: 9n, readAt: 1_794_999_999_000 });
    const reverts = factsWhose(() => {
      throw new SwapRevertError("too much");
    });
    expect(() => swaps.quoteAmountOut(10n, by, reverts)).toThrow(SwapRevertError);
    expect(requests).toHaveLength(0);
  });

  test("that they do not tell of is asked for once by all, and remembered until it is old", async () => {
    const { requests, clock, swaps } = setup();
    const unknown = factsWhose(() => undefined);
    const asked = Promise.all([
      swaps.quoteAmountOut(10n, by, unknown),
      swaps.quoteAmountOut(10n, by),
      swaps.quoteAmountOut(10n, by),
    ]);
    requests[0]?.answer();
    const found = { amountOut: 5n, readAt: clock.time };
    expect(await asked).toEqual([found, found, found]);
    clock.time += 4_000;
    expect(swaps.quoteAmountOut(10n, by)).toEqual(found);
    clock.time += 1;
    expect(swaps.quoteAmountOut(10n, by)).toBeInstanceOf(Promise);
    expect(requests.map(({ amounts }) => amounts)).toEqual([[10n], [10n]]);
  });

  test("waits for the request before it, and goes with at most 19 others", async () => {
    const { requests, swaps } = setup();
    const amounts = Array.from({ length: 51 }, (_, index) => BigInt(2 * index + 2));
    const asked = Promise.all(amounts.map((amount) => swaps.quoteAmountOut(amount, by)));
    const sizes = [1, 20, 20, 10];
    for (const [index, size] of sizes.entries()) {
      expect(requests.map((request) => request.amounts.length)).toEqual(sizes.slice(0, index + 1));
      expect(requests[index]?.amounts).toHaveLength(size);
      requests[index]?.answer();
      await turn();
    }
    expect((await asked).map(({ amountOut }) => amountOut)).toEqual(amounts.map((amount) => amount / 2n));
    expect(requests).toHaveLength(4);
  });

  test("reverts where the quoter does, alone, and is asked for anew", async () => {
    const { requests, swaps } = setup((call) =>
      amountOf(call) === 7n ? { revert: new RevertError("execution reverted", 3, "0x") } : half(call),
    );
    const [first, reverting, usual] = [
      swaps.quoteAmountOut(2n, by),
      swaps.quoteAmountOut(7n, by),
      swaps.quoteAmountOut(8n, by),
    ];
    requests[0]?.answer();
    await first;
    requests[1]?.answer();
    await expect(reverting).rejects.toThrow(SwapRevertError);
    expect(await usual).toMatchObject({ amountOut: 4n });
    expect(swaps.quoteAmountOut(7n, by)).toBeInstanceOf(Promise);
  });

  test.each([["no word"], ["0x"], [undefined]])("is refused when the answer is %s", async (result) => {
    const { requests, swaps } = setup(() => ({ result }));
    const asked = swaps.quoteAmountOut(2n, by);
    requests[0]?.answer();
    await expect(asked).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  });

  test("fails with its request, and the next one is tried", async () => {
    const { requests, swaps } = setup();
    const [failing, waiting] = [swaps.quoteAmountOut(2n, by), swaps.quoteAmountOut(4n, by)];
    requests[0]?.fail();
    await expect(failing).rejects.toThrow("down");
    requests[1]?.answer();
    expect(await waiting).toMatchObject({ amountOut: 2n });
  });

  test("is refused where a thousand of the same caller wait, but not an amount that is among them, nor another caller", async () => {
    const { requests, swaps } = setup();
    const all = Array.from({ length: 1_000 }, (_, amount) => swaps.quoteAmountOut(BigInt(amount), by));
    expect(() => swaps.quoteAmountOut(5_000n, by)).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
    expect(swaps.quoteAmountOut(999n, by)).toBe(all.at(-1));
    expect(swaps.quoteAmountOut(6_000n, { caller: "b" })).toBeInstanceOf(Promise);
    requests[0]?.answer();
    await turn();
    expect(swaps.quoteAmountOut(5_000n, by)).toBeInstanceOf(Promise);
  });
});
