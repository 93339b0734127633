import {
  parseEntries,
  parseInteger,
  parseList,
  parseNumber,
  parseRecord,
  parseText,
  printEntries,
} from "../../../shared-state/plain-values.js";
import type { SharedClock } from "../../../shared-state/shared-state.js";
import type { ChainStateValues } from "../chain-state.js";
import type { SwapPoolState } from "../uniswap-tick-window.js";

/** Prints chain state as JSON; its read time is on the clock that the processes share. */
export function printChainState(values: ChainStateValues, clock: SharedClock): string {
  const { block, readAt, readAtUnixSeconds, gasPrice, pools, uints, optionalUints, deliveries, swapPools } = values;
  return JSON.stringify({
    block: [String(block.number), String(block.timeSeconds)],
    readAt: clock.toShared(readAt),
    readAtUnixSeconds,
    gasPrice: gasPrice === undefined ? null : String(gasPrice),
    pools: printEntries(pools, ({ decimals, balances, aPrecise, swapFee }) => [
      decimals,
      ...[...balances, aPrecise, swapFee].map(String),
    ]),
    uints: printEntries(uints, String),
    optionalUints: printEntries(optionalUints, (value) => (value === undefined ? null : String(value))),
    deliveries: printEntries(deliveries, ({ gas, l1Fee }) => [String(gas), String(l1Fee)]),
    swapPools: printEntries(swapPools, (pool) => (pool === undefined ? null : printSwapPool(pool))),
  });
}

/** @throws TypeError for anything that printChainState does not print */
export function parseChainState(json: unknown, clock: SharedClock): ChainStateValues {
  const { block, readAt, readAtUnixSeconds, gasPrice, pools, uints, optionalUints, deliveries, swapPools } =
    parseRecord(json);
  const [number, timeSeconds] = parseList(block);
  return {
    block: { number: parseInteger(number), timeSeconds: parseInteger(timeSeconds) },
    readAt: clock.toMonotonic(parseNumber(readAt)),
    readAtUnixSeconds: parseNumber(readAtUnixSeconds),
    gasPrice: gasPrice === null ? undefined : parseInteger(gasPrice),
    pools: parseEntries(pools, parseText, (pool) => {
      const [decimals, first, second, aPrecise, swapFee] = parseList(pool);
      return {
        decimals: parseNumber(decimals),
        balances: [parseInteger(first), parseInteger(second)],
        aPrecise: parseInteger(aPrecise),
        swapFee: parseInteger(swapFee),
      };
    }),
    uints: parseEntries(uints, parseText, parseInteger),
    optionalUints: parseEntries(optionalUints, parseText, (value) =>
      value === null ? undefined : parseInteger(value),
    ),
    deliveries: parseEntries(deliveries, parseText, (cost) => {
      const [gas, l1Fee] = parseList(cost);
      return { gas: parseInteger(gas), l1Fee: parseInteger(l1Fee) };
    }),
    swapPools: parseEntries(swapPools, parseText, (pool) => (pool === null ? undefined : parseSwapPool(pool))),
  };
}

function printSwapPool(pool: SwapPoolState): unknown {
  return {
    ...pool,
    sqrtPriceX96: String(pool.sqrtPriceX96),
    liquidity: String(pool.liquidity),
    feePips: String(pool.feePips),
    bitmapWords: printEntries(pool.bitmapWords, String),
    liquidityNet: printEntries(pool.liquidityNet, String),
  };
}

function parseSwapPool(json: unknown): SwapPoolState {
  const pool = parseRecord(json);
  return {
    zeroForOne: pool.zeroForOne === true,
    sqrtPriceX96: parseInteger(pool.sqrtPriceX96),
    tick: parseNumber(pool.tick),
    liquidity: parseInteger(pool.liquidity),
    feePips: parseInteger(pool.feePips),
    tickSpacing: parseNumber(pool.tickSpacing),
    bitmapWords: parseEntries(pool.bitmapWords, parseNumber, parseInteger),
    liquidityNet: parseEntries(pool.liquidityNet, parseNumber, parseInteger),
  };
}
