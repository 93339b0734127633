import type { ContractCall } from "../../../chain/abi/multicall.js";
import type { UsdcSwapPool } from "../../../hop/usdc-swap-pools.js";
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
import type { RefreshPolicy } from "../chain-state-entry.js";
import type { DeliveryTransaction, ReadSet } from "../read-set.js";
import type { UniswapTickWindow } from "../uniswap-tick-window.js";

/** What a process asks of the one that reads a chain for all. Times are on the monotonic clock. */
export interface ChainStateDemand {
  /** Identifies read set and policy. */
  readonly key: string;
  readonly readSet: ReadSet;
  readonly refreshPolicy: RefreshPolicy;
  /** When a quote last needed it. */
  readonly requestedAt: number;
  /** When the state was read that the process has; undefined: it has none. */
  readonly newerThan: number | undefined;
}

/** Prints demands as JSON; their times are on the clock that the processes share. */
export function printDemands(demands: readonly ChainStateDemand[], clock: SharedClock): string {
  return JSON.stringify(
    demands.map(({ key, readSet, refreshPolicy, requestedAt, newerThan }) => ({
      key,
      refreshPolicy,
      requestedAt: clock.toShared(requestedAt),
      newerThan: newerThan === undefined ? null : clock.toShared(newerThan),
      pools: [...readSet.pools],
      uintCalls: [...readSet.uintCalls],
      optionalUintCalls: [...readSet.optionalUintCalls],
      deliveries: printEntries(readSet.deliveries, ({ fallbackGas, gasMargin, ...delivery }) => ({
        ...delivery,
        fallbackGas: String(fallbackGas),
        gasMargin: String(gasMargin),
      })),
      tickWindows: printEntries(readSet.tickWindows, ({ pool }) => ({ ...pool, feePips: String(pool.feePips) })),
      includesGasPrice: readSet.includesGasPrice,
    })),
  );
}

/**
 * @param getTickWindow returns this process's window of a pool
 * @throws TypeError for anything that printDemands does not print
 */
export function parseDemands(
  text: string,
  clock: SharedClock,
  getTickWindow: (pool: UsdcSwapPool) => UniswapTickWindow,
): readonly ChainStateDemand[] {
  return parseList(JSON.parse(text)).map((json): ChainStateDemand => {
    const demand = parseRecord(json);
    const readSet: ReadSet = {
      pools: parseEntries(demand.pools, parseText, (pool) => {
        const { address, decimals } = parseRecord(pool);
        return { address: parseText(address), decimals: parseNumber(decimals) };
      }),
      uintCalls: parseEntries(demand.uintCalls, parseText, parseCall),
      optionalUintCalls: parseEntries(demand.optionalUintCalls, parseText, parseCall),
      deliveries: parseEntries(demand.deliveries, parseText, parseDelivery),
      tickWindows: parseEntries(demand.tickWindows, parseText, (pool) => getTickWindow(parseSwapPool(pool))),
      includesGasPrice: demand.includesGasPrice === true,
    };
    const { refreshMs, maxAgeMs, maxStaleMs } = parseRecord(demand.refreshPolicy);
    return {
      key: parseText(demand.key),
      readSet,
      refreshPolicy: {
        refreshMs: parseNumber(refreshMs),
        maxAgeMs: parseNumber(maxAgeMs),
        maxStaleMs: parseNumber(maxStaleMs),
      },
      requestedAt: clock.toMonotonic(parseNumber(demand.requestedAt)),
      newerThan: demand.newerThan === null ? undefined : clock.toMonotonic(parseNumber(demand.newerThan)),
    };
  });
}

function parseCall(json: unknown): ContractCall {
  const { to, data } = parseRecord(json);
  return { to: parseText(to), data: parseText(data) };
}

function parseDelivery(json: unknown): DeliveryTransaction {
  const { from, to, calldata, deadlineSeconds, fallbackGas, gasMargin, hasL1Fee } = parseRecord(json);
  return {
    from: from === undefined ? undefined : parseText(from),
    to: parseText(to),
    calldata: parseText(calldata),
    deadlineSeconds: deadlineSeconds === undefined ? undefined : parseNumber(deadlineSeconds),
    fallbackGas: parseInteger(fallbackGas),
    gasMargin: parseInteger(gasMargin),
    hasL1Fee: hasL1Fee === true,
  };
}

function parseSwapPool(json: unknown): UsdcSwapPool {
  const { address, bridgedUsdc, nativeUsdc, quoterAddress, feePips } = parseRecord(json);
  return {
    address: parseText(address),
    bridgedUsdc: parseText(bridgedUsdc),
    nativeUsdc: parseText(nativeUsdc),
    quoterAddress: parseText(quoterAddress),
    feePips: parseInteger(feePips),
  };
}
