import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RpcLog } from "../../../src/chain/json-rpc/parse-results.js";
import { type Chain, getNetwork } from "../../../src/hop/networks.js";
import { readBody, sendJson } from "../stubs/http-stub.js";
import { callContract } from "./contract-calls.js";

/** A transaction with its logs on one of the chains. */
export interface AttackedTransaction {
  readonly slug: string;
  readonly hash: string;
  readonly block: number;
  readonly logs: readonly Pick<RpcLog, "address" | "topics" | "data">[];
}

/** How the chains respond; may be changed at any time. */
export interface ChainBehaviour {
  /** Latency of every response, in milliseconds. */
  latencyMs: number;
  /** Largest number of blocks of one `eth_getLogs`; a wider range gets an error that names it. */
  maxLogBlocks: number;
  /** HTTP status of an empty response to every request; undefined: the chains respond. */
  errorStatus: number | undefined;
  /** Leaves every request unanswered. */
  isHanging: boolean;
  /** Bytes of lists inside each other that answer every request; 0: the chains respond. */
  nestedBytes: number;
}

/**
 * The nine chains of mainnet behind one HTTP server that counts what it is asked. Each has more than 100 million blocks and
 * the transactions that are added; contracts return the same value for everything.
 */
export interface AttackedChains {
  readonly behaviour: ChainBehaviour;
  /** Returns the URL of one chain. */
  urlOf(slug: string): string;
  /** Environment of a service that has these chains only, and needs no other source. */
  readonly environment: Readonly<Record<string, string>>;
  add(transaction: AttackedTransaction): void;
  /** Returns the number of HTTP requests since the last reset. */
  requestCount(): number;
  /** Returns the number of JSON-RPC calls of a method since then. */
  callCount(method: string): number;
  /** Returns the number of connections since then. */
  connectionCount(): number;
  reset(): void;
  close(): Promise<void>;
}

/** Number of the block that was the newest when the server started. */
export const ATTACKED_HEAD = 100_000_000;
/** No server listens here. */
const UNREACHABLE_URL = "http://127.0.0.1:1";
const SENDER = `0x${"5e".repeat(20)}`;

export async function startAttackedChains(options: Partial<ChainBehaviour> = {}): Promise<AttackedChains> {
  const behaviour: ChainBehaviour = {
    latencyMs: 0,
    maxLogBlocks: Number.POSITIVE_INFINITY,
    errorStatus: undefined,
    isHanging: false,
    nestedBytes: 0,
    ...options,
  };
  const { chains } = getNetwork("mainnet");
  const transactions: AttackedTransaction[] = [];
  const startedAt = Date.now();
  let [requests, connections] = [0, 0];
  const calls = new Map<string, number>();

  const getHead = ({ blockTimeMs }: Chain): number =>
    ATTACKED_HEAD + Math.floor((Date.now() - startedAt) / blockTimeMs);

  function getHeader(chain: Chain, number: number) {
    if (number > getHead(chain) || number < 0) return null;
    const timestamp = Math.floor((startedAt + (number - ATTACKED_HEAD) * chain.blockTimeMs) / 1_000);
    return { number: toHex(number), hash: toBlockHash(chain, number), timestamp: toHex(Math.max(timestamp, 1)) };
  }

  function listLogs(chain: Chain, { hash, block, logs }: AttackedTransaction): RpcLog[] {
    const [blockNumber, blockHash] = [toHex(block), toBlockHash(chain, block)];
    return logs.map((log, index) => ({
      ...log,
      blockNumber,
      blockHash,
      logIndex: toHex(index),
      transactionHash: hash,
    }));
  }

  function searchLogs(chain: Chain, { fromBlock, toBlock, address, topics }: LogSearch): readonly RpcLog[] {
    const [from, to] = [Number(fromBlock), toBlock === "latest" ? getHead(chain) : Number(toBlock)];
    if (to - from >= behaviour.maxLogBlocks)
      throw new Error(`query exceeds the maximum range of ${behaviour.maxLogBlocks} blocks`);
    const addresses = new Set([address].flat().map((item) => item.toLowerCase()));
    return transactions
      .filter(({ slug, block }) => slug === chain.slug && block >= from && block <= to)
      .flatMap((transaction) => listLogs(chain, transaction))
      .filter(
        (log) =>
          addresses.has(log.address) &&
          topics.every((topic, index) => topic === null || [topic].flat().includes(log.topics[index] ?? "")),
      );
  }

  function execute(chain: Chain, method: string, params: readonly unknown[]): unknown {
    const [first] = params;
    const transaction = transactions.find(({ slug, hash }) => slug === chain.slug && hash === first);
    switch (method) {
      case "eth_chainId":
        return toHex(chain.chainId);
      case "eth_blockNumber":
        return toHex(getHead(chain));
      case "eth_gasPrice":
        return toHex(1_000_000_000);
      case "eth_estimateGas":
        return toHex(200_000);
      case "eth_getBlockByNumber":
        if (first === "latest") return getHeader(chain, getHead(chain));
        return getHeader(chain, first === "finalized" ? getHead(chain) - 100 : Number(first));
      case "eth_getBlockByHash":
        return getHeader(chain, Number.parseInt(String(first).slice(-12), 16));
      case "eth_getTransactionByHash":
        return transaction === undefined ? null : { hash: transaction.hash, from: SENDER };
      case "eth_getTransactionReceipt": {
        if (transaction === undefined) return null;
        const { hash, block } = transaction;
        const blockHash = toBlockHash(chain, block);
        const logs = listLogs(chain, transaction);
        return { transactionHash: hash, blockHash, blockNumber: toHex(block), from: SENDER, logs };
      }
      case "eth_getLogs":
        return searchLogs(chain, first as LogSearch);
      case "eth_call":
        return callContract(first as { to: string; data: string }, getHead(chain));
      default:
        throw new Error(`unexpected ${method}`);
    }
  }

  function respond(chain: Chain, { id, method, params = [] }: RpcMessage) {
    calls.set(method, (calls.get(method) ?? 0) + 1);
    try {
      return { jsonrpc: "2.0", id, result: execute(chain, method, params) };
    } catch (error) {
      return { jsonrpc: "2.0", id, error: { code: -32_005, message: (error as Error).message } };
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    requests += 1;
    const body = JSON.parse(await readBody(request)) as RpcMessage | RpcMessage[];
    const chain = chains.get(request.url?.slice(1) ?? "");
    if (chain === undefined) throw new Error(`no chain ${request.url}`);
    const answers = [body].flat().map((message) => respond(chain, message));
    if (behaviour.isHanging) return;
    if (behaviour.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, behaviour.latencyMs).unref());
    if (behaviour.nestedBytes > 0)
      response.writeHead(200, { "content-type": "application/json" }).end(Buffer.alloc(behaviour.nestedBytes, "["));
    else if (behaviour.errorStatus !== undefined) response.writeHead(behaviour.errorStatus).end();
    else sendJson(response, Array.isArray(body) ? answers : answers[0]);
  }

  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const urlOf = (slug: string): string => `http://127.0.0.1:${port}/${slug}`;
  return {
    behaviour,
    urlOf,
    environment: {
      ...Object.fromEntries([...chains.keys()].map((slug) => [`RPC_URL_${slug.toUpperCase()}`, urlOf(slug)])),
      ...Object.fromEntries(
        [...getNetwork("goerli").chains.keys()].map((slug) => [
          `GOERLI_RPC_URL_${slug.toUpperCase()}`,
          UNREACHABLE_URL,
        ]),
      ),
      ASSETS_URL: "off",
      EXPLORER_API_URL: "off",
      ATTESTATION_API_URL: "off",
      TOKEN_PRICES: JSON.stringify({ ETH: 3_000, USDT: 1, USDC: 1, DAI: 1, MATIC: 0.5, POL: 0.5 }),
      CUSTOM_RPC_URLS: "any",
      MAX_BLOCK_AGE_MS: "0",
    },
    add: (transaction) => void transactions.push(transaction),
    requestCount: () => requests,
    callCount: (method) => calls.get(method) ?? 0,
    connectionCount: () => connections,
    reset() {
      [requests, connections] = [0, 0];
      calls.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface RpcMessage {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

interface LogSearch {
  readonly fromBlock: string;
  readonly toBlock: string;
  readonly address: string | readonly string[];
  readonly topics: readonly (string | readonly string[] | null)[];
}

/** Returns a hash that ends in the number of its block. */
function toBlockHash({ chainId }: Chain, number: number): string {
  return `0x${chainId.toString(16).padStart(52, "0")}${number.toString(16).padStart(12, "0")}`;
}

function toHex(number: number): string {
  return `0x${number.toString(16)}`;
}
