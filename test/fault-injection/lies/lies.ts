import { utils } from "ethers";
import type { ProxiedCall } from "../../support/stubs/rpc-messages.js";
import type { TellLie } from "./lying-proxy.js";

// Well-formed lies of an endpoint: each passes every check of a single answer.

/** A lie, and what the endpoint that tells it is named for. lagging: it is named as behind its peers. */
export interface Lie {
  readonly tell: TellLie;
  readonly namedFor: string | "lagging" | undefined;
  /** Whether it is about something that is read for no quote. */
  readonly isOnlyForStatuses?: boolean;
}

const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);
const contracts = new utils.Interface([
  "function getTokenBalance(uint8) view returns (uint256)",
  "function getAPrecise() view returns (uint256)",
  "function swapStorage() view returns (uint256, uint256, uint256, uint256, uint256, uint256, uint256, address)",
  "function getCurrentBlockTimestamp() view returns (uint256)",
  "function getBlockNumber() view returns (uint256)",
  "function isTransferIdSpent(bytes32) view returns (bool)",
  "function slot0() view returns (uint160, int24, uint16, uint16, uint16, uint8, bool)",
  "function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)",
  "function getL1Fee(bytes) view returns (uint256)",
]);

/** Feeds have eight decimals. */
const THOUSAND_DOLLARS = 10n ** 11n;

type Json = Readonly<Record<string, unknown>>;
/** What a node has answered: each method has one form of results. */
type Truth = Json & string;

const toHex = (value: bigint | number): string => `0x${value.toString(16)}`;
const scale = (value: unknown, numerator: bigint, denominator = 1n): string =>
  toHex((BigInt(String(value)) * numerator) / denominator);

/** Changes the results of a method. */
const changeResult =
  (method: string, change: (truth: Truth, call: ProxiedCall) => unknown): TellLie =>
  (call, truth) => {
    if (call.method !== method || truth === undefined || truth === null) return undefined;
    const result = change(truth as Truth, call);
    return result === undefined ? undefined : { result };
  };

/** Changes a word that a contract returns, alone or in a Multicall. */
function changeWord(name: string, change: (word: bigint) => bigint, wordIndex = 0): TellLie {
  const selector = contracts.getSighash(name);
  const changeData = (calldata: string, data: string): string => {
    const start = 2 + 64 * wordIndex;
    if (!calldata.startsWith(selector) || data.length < start + 64) return data;
    const changed = BigInt.asUintN(256, change(BigInt(`0x${data.slice(start, start + 64)}`)));
    return data.slice(0, start) + changed.toString(16).padStart(64, "0") + data.slice(start + 64);
  };
  return changeResult("eth_call", (truth, { params }) => {
    const { data } = params[0] as { data: string };
    if (!data.startsWith(multicall.getSighash("aggregate3"))) return changeData(data, truth);
    const { calls } = multicall.decodeFunctionData("aggregate3", data) as unknown as { calls: { callData: string }[] };
    const [results] = multicall.decodeFunctionResult("aggregate3", truth) as unknown as [[boolean, string][]];
    const changed = results.map(([success, result], index) => [
      success,
      changeData(calls[index]?.callData ?? "", result),
    ]);
    return multicall.encodeFunctionResult("aggregate3", [changed]);
  });
}

/** Changes the header that the node calls its latest, or its finalized one. */
const changeHeader = (tag: string, change: (header: Json) => Json): TellLie =>
  changeResult("eth_getBlockByNumber", (truth, { params }) => (params[0] === tag ? change(truth) : undefined));

const changeLogs = (logs: unknown, change: (logs: readonly Json[]) => readonly Json[]): readonly Json[] =>
  change(logs as readonly Json[]);

/** The same log with another value in its data. */
function falsify(log: Json): Json {
  const data = String(log.data);
  const digit = data.at(-1) === "0" ? "1" : "0";
  return data.length < 3 ? { ...log, logIndex: scale(log.logIndex, 7n) } : { ...log, data: data.slice(0, -1) + digit };
}

const receiptLie = (change: (receipt: Json) => unknown): TellLie => changeResult("eth_getTransactionReceipt", change);

/** Chain state of an earlier block, with a head that looks like that of the others. */
const tellOldState: TellLie = async ({ method, params }, truth, ask) => {
  if (method !== "eth_call" || truth === undefined) return undefined;
  const [call, tag] = params;
  const head = typeof tag === "string" && tag.startsWith("0x") ? Number(tag) : Number(await ask("eth_blockNumber", []));
  return { result: await ask("eth_call", [call, toHex(head - 2)]) };
};

/** No lie: what a node says that is a block behind. */
export const tellBlockBehind: TellLie = async ({ method, params }, _, ask) => {
  const head = Number(await ask("eth_blockNumber", [])) - 1;
  if (method === "eth_blockNumber") return { result: toHex(head) };
  const index = ["eth_getBlockByNumber", "eth_call"].indexOf(method);
  const block = params[index];
  if (block === "latest") return { result: await ask(method, params.with(index, toHex(head))) };
  if (typeof block !== "string" || !(Number(block) > head)) return undefined;
  return method === "eth_call" ? { error: { code: -32000, message: "header not found" } } : { result: null };
};

/** A receipt for a transaction that the chain does not have. */
const inventReceipt =
  (getReceipt: () => Promise<unknown>): TellLie =>
  async ({ method, params }, truth) => {
    if (method !== "eth_getTransactionReceipt" || truth !== null) return undefined;
    const text = JSON.stringify(await getReceipt());
    const { transactionHash } = JSON.parse(text) as { transactionHash: string };
    return { result: JSON.parse(text.replaceAll(transactionHash, String(params[0]))) as unknown };
  };

/** @param getReceipt returns a receipt of a transfer, from its chain */
export function listLies(getReceipt: () => Promise<unknown>): Readonly<Record<string, Lie>> {
  const contract = (tell: TellLie): Lie => ({ tell, namedFor: "contract" });
  const receipt = (tell: TellLie): Lie => ({ tell, namedFor: "receipt", isOnlyForStatuses: true });
  return {
    "a tenfold gas price": { tell: changeResult("eth_gasPrice", (truth) => scale(truth, 10n)), namedFor: "gas_price" },
    "a tenth of the gas price": {
      tell: changeResult("eth_gasPrice", (truth) => scale(truth, 1n, 10n)),
      namedFor: "gas_price",
    },
    "a threefold gas estimate": {
      tell: changeResult("eth_estimateGas", (truth) => scale(truth, 3n)),
      namedFor: "gas_estimate",
    },
    "a delivery that reverts": {
      tell: ({ method }) =>
        method === "eth_estimateGas" ? { error: { code: 3, message: "execution reverted", data: "0x" } } : undefined,
      namedFor: "gas_estimate",
    },
    "another balance of the pool": contract(changeWord("getTokenBalance", (word) => (word * 11n) / 10n)),
    "another A": contract(changeWord("getAPrecise", (word) => word * 2n)),
    "another fee of the pool": contract(changeWord("swapStorage", (word) => word / 2n, 4)),
    // That of ETH: the same factor for all prices would change no fee.
    "another price of a feed": contract(
      changeWord("latestRoundData", (word) => (word > THOUSAND_DOLLARS ? (word * 103n) / 100n : word), 1),
    ),
    "another fee for data on L1": contract(changeWord("getL1Fee", (word) => word * 2n + 1n)),
    "another price of the Uniswap pool": contract(changeWord("slot0", (word) => (word * 101n) / 100n)),
    "another time of the block": contract(changeWord("getCurrentBlockTimestamp", (word) => word + 3_600n)),
    "a higher block of the state": contract(changeWord("getBlockNumber", (word) => word + 3n)),
    "chain state of an old block": contract(tellOldState),
    "a contract call that reverts": contract(({ method }) =>
      method === "eth_call" ? { error: { code: 3, message: "execution reverted", data: "0x" } } : undefined,
    ),
    "transfers that are delivered, pending": {
      ...contract(changeWord("isTransferIdSpent", () => 0n)),
      isOnlyForStatuses: true,
    },
    "a head that is too high": {
      tell: changeHeader("latest", (header) => ({ ...header, number: toHex(Number(header.number) + 1_000) })),
      namedFor: "head",
    },
    "a head of a later time": {
      tell: changeHeader("latest", (header) => ({ ...header, timestamp: toHex(Number(header.timestamp) + 3_600) })),
      namedFor: "head",
    },
    "a head that is too low": {
      tell: changeHeader("latest", (header) => ({
        ...header,
        number: toHex(Math.floor(Number(header.number) / 2)),
        timestamp: toHex(Number(header.timestamp) - 86_400),
      })),
      namedFor: "lagging",
    },
    "finality too high": {
      tell: async ({ method, params }, _, ask) =>
        method === "eth_getBlockByNumber" && params[0] === "finalized"
          ? { result: await ask(method, ["latest", false]) }
          : undefined,
      namedFor: "finality",
      isOnlyForStatuses: true,
    },
    "a receipt that is missing": receipt(({ method }) =>
      method === "eth_getTransactionReceipt" ? { result: null } : undefined,
    ),
    "a receipt of a transaction that does not exist": receipt(inventReceipt(getReceipt)),
    "a receipt with other logs": receipt(
      receiptLie((truth) => ({ ...truth, logs: changeLogs(truth.logs, (logs) => logs.map(falsify)) })),
    ),
    "a receipt without logs": receipt(receiptLie((truth) => ({ ...truth, logs: [] }))),
    "a receipt with another status": receipt(receiptLie((truth) => ({ ...truth, status: "0x0" }))),
    "a receipt from another sender": receipt(receiptLie((truth) => ({ ...truth, from: `0x${"1".repeat(40)}` }))),
    "a transaction from another sender": {
      tell: changeResult("eth_getTransactionByHash", (truth) => ({ ...(truth as Json), from: `0x${"1".repeat(40)}` })),
      namedFor: "transaction",
      isOnlyForStatuses: true,
    },
    // It lacks what others have, as an honest node does that has pruned it.
    "a transaction that is missing": {
      tell: ({ method }) => (method === "eth_getTransactionByHash" ? { result: null } : undefined),
      namedFor: undefined,
      isOnlyForStatuses: true,
    },
    "logs left out": { tell: changeResult("eth_getLogs", () => []), namedFor: "logs", isOnlyForStatuses: true },
    "logs invented": {
      tell: changeResult("eth_getLogs", (truth) =>
        changeLogs(truth, (logs) => [...logs, ...logs.map((log) => ({ ...log, logIndex: scale(log.logIndex, 3n) }))]),
      ),
      namedFor: "logs",
      isOnlyForStatuses: true,
    },
    "logs with other values": {
      tell: changeResult("eth_getLogs", (truth) => changeLogs(truth, (logs) => logs.map(falsify))),
      namedFor: "logs",
      isOnlyForStatuses: true,
    },
    "blocks of another time": {
      tell: (call, truth) =>
        call.params[0] === "latest" || truth === null
          ? undefined
          : changeResult(call.method.startsWith("eth_getBlockBy") ? call.method : "", (header) => ({
              ...(header as Json),
              timestamp: toHex(Number(header.timestamp) - 600),
            }))(call, truth, async () => undefined),
      namedFor: "block",
      isOnlyForStatuses: true,
    },
  };
}
