import { toHexQuantity } from "./json-rpc.js";
import { getGasPrice, type LocalChain } from "./local-chains.js";

export interface EventLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

export interface TransactionReceipt {
  readonly transactionHash: string;
  readonly status: string;
  readonly blockNumber: string;
  readonly logs: readonly EventLog[];
}

export interface TransactionRequest {
  /** Any account: the local chains allow impersonation. */
  readonly from: string;
  readonly to: string;
  readonly data: string;
  /** In wei. */
  readonly value?: bigint;
  readonly gasLimit?: number;
}

const GAS_RESERVE = 10n ** 18n;
/** Not estimated, so that hashes of transactions, which our documents quote, do not change with the code of contracts. */
const GAS_LIMIT = 10_000_000;

/**
 * Sends a transaction, waits until it is mined and returns its receipt. Tops up the sender's balance first if needed.
 * @throws Error when it reverts
 */
export async function sendTransaction(chain: LocalChain, call: TransactionRequest): Promise<TransactionReceipt> {
  const transaction = await prepareTransaction(chain, call);
  return expectSuccess(chain, (await chain.rpc("eth_sendTransactionSync", [transaction])) as TransactionReceipt);
}

async function prepareTransaction(chain: LocalChain, call: TransactionRequest): Promise<Record<string, string>> {
  const { from, to, data, value = 0n, gasLimit = GAS_LIMIT } = call;
  const needed = value + GAS_RESERVE;
  const balance = BigInt((await chain.rpc("eth_getBalance", [from, "latest"])) as string);
  if (balance < needed) await chain.rpc("anvil_setBalance", [from, toHexQuantity(needed + 100n * GAS_RESERVE)]);
  // Set explicitly: on cheap chains anvil's default priority fee exceeds its default fee cap.
  const fees = { maxFeePerGas: toHexQuantity(2n * getGasPrice(chain.slug)), maxPriorityFeePerGas: "0x0" };
  return { from, to, data, value: toHexQuantity(value), gas: toHexQuantity(gasLimit), ...fees };
}

function expectSuccess(chain: LocalChain, receipt: TransactionReceipt): TransactionReceipt {
  if (receipt.status !== "0x1") throw new Error(`transaction ${receipt.transactionHash} on ${chain.slug} reverted`);
  return receipt;
}

/** Calls a contract and returns the raw return data. */
export async function callContract(chain: LocalChain, to: string, data: string): Promise<string> {
  return (await chain.rpc("eth_call", [{ to, data }, "latest"])) as string;
}
