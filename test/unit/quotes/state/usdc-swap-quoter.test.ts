import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient, RpcCall, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import { SwapRevertError } from "../../../../src/quotes/math/stable-swap.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import { UsdcSwapQuoter } from "../../../../src/quotes/state/usdc-swap-quoter.js";
import { createChainState } from "../../../support/stubs/quote-routes.js";

const pool = findUsdcSwapPool("polygon");
if (pool === undefined) throw new Error("USDC.e is swapped on polygon");

const decodeAmount = ({ params: [call] }: RpcCall): bigint =>
  BigInt(`0x${(call as { data: string }).data.slice(10 + 64, 10 + 128)}`);
const respondHalf = (call: RpcCall): RpcCallResult => ({
  result: `0x${(decodeAmount(call) / 2n).toString(16).padStart(64, "0")}`,
});

/** A Quoter contract that returns half the amount; the test settles each request. */
function setup(respond: (call: RpcCall) => RpcCallResult = respondHalf) {
  const requests: { readonly amounts: readonly bigint[]; respond(): void; fail(): void }[] = [];
  const client: ChainClient = {
    slug: "polygon",
    send: () => Promise.reject(new Error("not expected")),
    getLogs: () => Promise.reject(new Error("not expected")),
    sendBatch: (calls) =>
      new Promise((resolve, reject) => {
        requests.push({
          amounts: calls.map(decodeAmount),
          respond: () => resolve(calls.map(respond)),
          fail: () => reject(new Error("down")),
        });
      }),
  };
  const clock = { time: 1_795_000_000_000 };
  const { signal } = new AbortController();
  const limits = { maxAgeMs: 4_000, now: () => clock.time, signal };
  const quoter = new UsdcSwapQuoter({ client, pool: pool as NonNullable<typeof pool>, ...limits });
  return { requests, clock, quoter };
}

const requester = { caller: "a" };
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function createState(amountOut: (amountIn: bigint) => bigint | undefined): ChainState {
  const state = createChainState([], { readAt: 1_794_999_999_000 });
  return Object.assign(state, {
    findUniswapSwap: (address: string) => (address === pool?.address ? amountOut : undefined),
  });
}

describe("UsdcSwapQuoter", () => {
  test("asks Uniswap's Quoter for a swap of USDC.e to USDC by their pool, in the newest block", async () => {
    const calls: RpcCall[] = [];
    const { requests, quoter } = setup((call) => {
      calls.push(call);
      return respondHalf(call);
    });
    const result = quoter.quoteAmountOut(1_000n, requester);
    requests[0]?.respond();
    await result;
    const abi = new utils.Interface(["function quoteExactInput(bytes path, uint256 amountIn) returns (uint256)"]);
    const path = utils.solidityPack(["address", "uint24", "address"], [pool.bridgedUsdc, 100, pool.nativeUsdc]);
    const data = abi.encodeFunctionData("quoteExactInput", [path, 1_000]);
    expect(calls).toEqual([{ method: "eth_call", params: [{ to: pool.quoterAddress, data }, "latest"] }]);
  });

  test("keeps the newest 10,000 amounts", async () => {
    const { requests, quoter } = setup();
    const quoteAll = async (from: number, to: number): Promise<void> => {
      const results = Array.from({ length: to - from }, (_, index) =>
        quoter.quoteAmountOut(BigInt(from + index), requester),
      );
      const settled = Promise.all(results);
      for (let done = false; !done; ) {
        const sent = requests.length;
        requests.at(-1)?.respond();
        await nextTurn();
        done = requests.length === sent;
      }
      await settled;
    };
    for (let from = 0; from < 10_000; from += 1_000) await quoteAll(from, from + 1_000);
    expect(quoter.quoteAmountOut(0n, requester)).not.toBeInstanceOf(Promise);
    await quoteAll(10_000, 10_001);
    expect(quoter.quoteAmountOut(1n, requester)).not.toBeInstanceOf(Promise);
    expect(quoter.quoteAmountOut(0n, requester)).toBeInstanceOf(Promise);
  });

  test("computes the swap from chain state without a call, with the state's age", () => {
    const { requests, quoter } = setup();
    const lessOne = createState((amountIn) => amountIn - 1n);
    expect(quoter.quoteAmountOut(10n, requester, lessOne)).toEqual({ amountOut: 9n, readAt: 1_794_999_999_000 });
    const reverts = createState(() => {
      throw new SwapRevertError("too much");
    });
    expect(() => quoter.quoteAmountOut(10n, requester, reverts)).toThrow(SwapRevertError);
    expect(requests).toHaveLength(0);
  });

  test("calls the Quoter contract if the chain state is without the pool's ticks", async () => {
    const { requests, quoter } = setup();
    const result = quoter.quoteAmountOut(10n, requester, createChainState());
    requests[0]?.respond();
    expect(await result).toMatchObject({ amountOut: 5n });
  });

  test("calls the Quoter contract once per amount otherwise, and caches the result until it is too old", async () => {
    const { requests, clock, quoter } = setup();
    const unknown = createState(() => undefined);
    const results = Promise.all([
      quoter.quoteAmountOut(10n, requester, unknown),
      quoter.quoteAmountOut(10n, requester),
      quoter.quoteAmountOut(10n, requester),
    ]);
    requests[0]?.respond();
    const amount = { amountOut: 5n, readAt: clock.time };
    expect(await results).toEqual([amount, amount, amount]);
    clock.time += 4_000;
    expect(quoter.quoteAmountOut(10n, requester)).toEqual(amount);
    clock.time += 1;
    expect(quoter.quoteAmountOut(10n, requester)).toBeInstanceOf(Promise);
    expect(requests.map(({ amounts }) => amounts)).toEqual([[10n], [10n]]);
  });

  test("sends one request at a time, with at most 20 amounts", async () => {
    const { requests, quoter } = setup();
    const amounts = Array.from({ length: 51 }, (_, index) => BigInt(2 * index + 2));
    const results = Promise.all(amounts.map((amountIn) => quoter.quoteAmountOut(amountIn, requester)));
    const sizes = [1, 20, 20, 10];
    for (const [index, size] of sizes.entries()) {
      expect(requests.map((request) => request.amounts.length)).toEqual(sizes.slice(0, index + 1));
      expect(requests[index]?.amounts).toHaveLength(size);
      requests[index]?.respond();
      await nextTurn();
    }
    expect((await results).map(({ amountOut }) => amountOut)).toEqual(amounts.map((amount) => amount / 2n));
    expect(requests).toHaveLength(4);
  });

  test("rejects only the amount for which the Quoter reverts, and does not cache it", async () => {
    const { requests, quoter } = setup((call) =>
      decodeAmount(call) === 7n ? { revert: new RevertError("execution reverted", 3, "0x") } : respondHalf(call),
    );
    const results = [2n, 7n, 8n].map((amountIn) => quoter.quoteAmountOut(amountIn, requester));
    const [first, reverting, other] = results;
    requests[0]?.respond();
    await first;
    requests[1]?.respond();
    await expect(reverting).rejects.toThrow(SwapRevertError);
    expect(await other).toMatchObject({ amountOut: 4n });
    expect(quoter.quoteAmountOut(7n, requester)).toBeInstanceOf(Promise);
  });

  test.each([["no word"], ["0x"], [undefined]])("fails when the response is %s", async (result) => {
    const { requests, quoter } = setup(() => ({ result }));
    const results = quoter.quoteAmountOut(2n, requester);
    requests[0]?.respond();
    const message = "polygon returned an invalid response for a Uniswap contract";
    await expect(results).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message });
  });

  test("rejects the amounts of a failed request only", async () => {
    const { requests, quoter } = setup();
    const [failing, queued] = [quoter.quoteAmountOut(2n, requester), quoter.quoteAmountOut(4n, requester)];
    requests[0]?.fail();
    await expect(failing).rejects.toThrow("down");
    requests[1]?.respond();
    expect(await queued).toMatchObject({ amountOut: 2n });
  });

  test("rejects new amounts of a caller with a thousand pending ones, but not pending amounts or other callers", async () => {
    const { requests, quoter } = setup();
    const pending = Array.from({ length: 1_000 }, (_, amount) => quoter.quoteAmountOut(BigInt(amount), requester));
    const message = "too many pending Uniswap quotes on polygon";
    expect(() => quoter.quoteAmountOut(5_000n, requester)).toThrow(
      expect.objectContaining({ reason: "OVERLOADED", message, retryAfterSeconds: 1 }),
    );
    expect(quoter.quoteAmountOut(999n, requester)).toBe(pending.at(-1));
    expect(quoter.quoteAmountOut(6_000n, { caller: "b" })).toBeInstanceOf(Promise);
    requests[0]?.respond();
    await nextTurn();
    expect(quoter.quoteAmountOut(5_000n, requester)).toBeInstanceOf(Promise);
  });
});
