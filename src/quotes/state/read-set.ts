import { decodeUintAt, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import type { StableSwapPool } from "../math/stable-swap.js";

/** One value that quotes read of the contracts of a chain. */
export interface ContractRead<Value = unknown> {
  /** Equal reads of several routes have equal keys and are sent once. */
  readonly key: string;
  /** Whether a quote is possible without the value. */
  readonly isOptional: boolean;
  /**
   * Plans the next read. `decode` gets the return data of each call as 0x-prefixed hex, undefined for one that reverted; it
   * returns undefined for responses that the contract cannot give.
   */
  plan(): {
    readonly calls: readonly ContractCall[];
    decode(returnData: readonly (string | undefined)[]): Value | undefined;
  };
  /** Prepares the next read by a value that another process has read. */
  follow?(value: Value): void;
}

/** The transaction that delivers a transfer to its recipient. Its cost does not depend on the amount. */
export interface DeliveryTransaction {
  readonly from: string | undefined;
  readonly to: string;
  /** Calldata as 0x-prefixed hex, without the deadline. */
  readonly calldata: string;
  /** Time until the deadline, which is the last word of the calldata; undefined: it has none. */
  readonly deadlineSeconds: number | undefined;
  /** Gas if the estimate reverts. */
  readonly fallbackGas: bigint;
  /** Gas added to the node's estimate. */
  readonly gasMargin: bigint;
  /** Whether the chain charges for the transaction data on L1 like the OP Stack does. */
  readonly hasL1Fee: boolean;
}

/** What one route reads on one chain, by key. */
export interface ReadSet {
  readonly contractReads: ReadonlyMap<string, ContractRead>;
  readonly deliveries: ReadonlyMap<string, DeliveryTransaction>;
  readonly includesGasPrice: boolean;
}

/** Reads only the block. */
export const EMPTY_READ_SET: ReadSet = { contractReads: new Map(), deliveries: new Map(), includesGasPrice: false };

/** Creates a read set; undefined when there is nothing to read. */
export function createReadSet({
  contractReads = [],
  delivery,
  includesGasPrice = false,
}: {
  readonly contractReads?: readonly ContractRead[];
  readonly delivery?: DeliveryTransaction | undefined;
  readonly includesGasPrice?: boolean;
}): ReadSet | undefined {
  if (contractReads.length === 0 && delivery === undefined && !includesGasPrice) return undefined;
  return {
    contractReads: new Map(contractReads.map((read) => [read.key, read])),
    deliveries: new Map(delivery && [[getDeliveryTransactionKey(delivery), delivery]]),
    includesGasPrice,
  };
}

/** Returns a read set with further reads of contracts; undefined when there is nothing to read. */
export function addContractReads(readSet: ReadSet | undefined, reads: readonly ContractRead[]): ReadSet | undefined {
  return mergeDefined(readSet, createReadSet({ contractReads: reads }));
}

function mergeDefined(first: ReadSet | undefined, second: ReadSet | undefined): ReadSet | undefined {
  return first && second ? mergeReadSets([first, second]) : (first ?? second);
}

/** Returns the union of the read sets. */
export function mergeReadSets(readSets: readonly ReadSet[]): ReadSet {
  return {
    contractReads: new Map(readSets.flatMap(({ contractReads }) => [...contractReads])),
    deliveries: new Map(readSets.flatMap(({ deliveries }) => [...deliveries])),
    includesGasPrice: readSets.some(({ includesGasPrice }) => includesGasPrice),
  };
}

/** Returns a key that is equal for equal read sets of one chain. */
export function getReadSetKey({ contractReads, deliveries, includesGasPrice }: ReadSet): string {
  return JSON.stringify([[...contractReads.keys()], [...deliveries.keys()], includesGasPrice]);
}

export function getDeliveryTransactionKey(delivery: DeliveryTransaction): string {
  return `${delivery.from ?? ""} ${delivery.to} ${encodeDeliveryCalldata(delivery, 0)}`;
}

/** Returns the calldata of a delivery that is sent at this time, as 0x-prefixed hex. @param nowSeconds Unix seconds */
export function encodeDeliveryCalldata({ calldata, deadlineSeconds }: DeliveryTransaction, nowSeconds: number): string {
  return deadlineSeconds === undefined ? calldata : calldata + encodeWord(BigInt(nowSeconds + deadlineSeconds));
}

/** Reads what a function returns that returns one uint256. */
export function createUintRead(call: ContractCall, isOptional = false): ContractRead<bigint> {
  return {
    key: `${isOptional ? "optional " : ""}${call.to} ${call.data}`,
    isOptional,
    plan: () => ({ calls: [call], decode: ([data]) => decodeUintAt(data ?? "0x", 0) }),
  };
}

const getTokenBalanceSelector = toFunctionSelector("getTokenBalance(uint8)");
const getAPreciseSelector = toFunctionSelector("getAPrecise()");
const swapStorageSelector = toFunctionSelector("swapStorage()");
/** Index of the swap fee in the result of `swapStorage()`. */
const SWAP_FEE_WORD_INDEX = 4;

/** Reads the state of a StableSwap pool. @param decimals of both tokens */
export function createPoolRead(address: string, decimals: number): ContractRead<StableSwapPool> {
  const calls = [
    getTokenBalanceSelector + encodeWord(0n),
    getTokenBalanceSelector + encodeWord(1n),
    getAPreciseSelector,
    swapStorageSelector,
  ].map((data) => ({ to: address, data }));
  return {
    key: address,
    isOptional: false,
    plan: () => ({
      calls,
      decode([...returnData]) {
        const swapFee = decodeUintAt(returnData.pop() ?? "0x", SWAP_FEE_WORD_INDEX);
        const [first, second, aPrecise] = returnData.map((data) => decodeUintAt(data ?? "0x", 0));
        const isComplete =
          first !== undefined && second !== undefined && aPrecise !== undefined && swapFee !== undefined;
        return isComplete ? { decimals, balances: [first, second], aPrecise, swapFee } : undefined;
      },
    }),
  };
}
