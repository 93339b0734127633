import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ChainClient, RpcCall } from "../../../src/chain/chain-client.js";
import type { RpcLog } from "../../../src/chain/json-rpc/parse-results.js";
import { RpcError } from "../../../src/chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../../src/errors.js";
import { type HttpStub, readBody, sendJson, startHttpStub } from "./http-stub.js";

/** An event as a test defines it; the chain adds block and log index. */
export interface StubEvent {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
  /** Sender of the transaction. */
  readonly from: string;
}

/** A chain without contracts, whose blocks contain the events that a test adds. */
export interface ChainStub {
  readonly client: ChainClient;
  /** Number of the newest block. */
  head: number;
  /** Number of the finalized block; undefined: the tag is rejected. */
  finalized: number | undefined;
  /** Searches of more blocks, or with more logs as their result, are rejected. */
  maxLogBlocks: number;
  maxLogs: number;
  /** Later blocks are hidden, as by a lagging node, but their logs are not. */
  maxVisibleBlock: number;
  /** Logs of later blocks are omitted without an error. */
  maxLogBlock: number;
  /** The methods of each request so far. */
  readonly requests: string[][];
  /** Runs before each response. */
  onRequest: () => void;
  setBlock(number: number, events: readonly StubEvent[]): void;
  /** Adds blocks with the events of each. */
  addBlocks(...blocks: readonly (readonly StubEvent[])[]): void;
  /** Replaces the newest `depth` blocks by others; adds more if there are more. */
  reorg(depth: number, ...blocks: readonly (readonly StubEvent[])[]): void;
  /** Returns the result of one call. @throws Error for a rejected call */
  call(method: string, params: readonly unknown[]): unknown;
}

export interface ChainStubOptions {
  readonly slug: string;
  readonly chainId: number;
  readonly head: number;
  /** Unix seconds of block 0. */
  readonly startedAt?: number;
  readonly blockSeconds?: number;
}

export function createChainStub(options: ChainStubOptions): ChainStub {
  const { slug, chainId, startedAt = 1_700_000_000, blockSeconds = 2 } = options;
  const events = new Map<number, readonly StubEvent[]>();
  const senders = new Map<string, string>();
  const blocksByHash = new Map<string, number>();
  /** How often a block was replaced. */
  const versions = new Map<number, number>();

  const hashOf = (number: number): string =>
    `0x${createHash("sha256")
      .update(`${slug} ${number} ${versions.get(number) ?? 0}`)
      .digest("hex")}`;

  function header(number: number) {
    if (number > Math.min(stub.head, stub.maxVisibleBlock) || number < 0) return null;
    const hash = hashOf(number);
    blocksByHash.set(hash, number);
    return { number: toHex(number), hash, timestamp: toHex(startedAt + number * blockSeconds) };
  }

  function numberOf(block: unknown): number {
    if (block === "latest") return Math.min(stub.head, stub.maxVisibleBlock);
    if (block !== "finalized") return Number(block);
    if (stub.finalized === undefined) throw new RpcError("unknown tag", { kind: "not_found", numbers: [] });
    return stub.finalized;
  }

  function logs({ fromBlock, toBlock, address, topics }: Filter): RpcLog[] {
    const from = Number(fromBlock);
    const to = toBlock === "latest" ? stub.head : Number(toBlock);
    if (from > numberOf("latest") && toBlock === "latest") throw new Error("invalid block range");
    if (to - from >= stub.maxLogBlocks) throw new Error("too many blocks");
    const addresses = new Set([address].flat().map((item) => item.toLowerCase()));
    const result: RpcLog[] = [];
    for (let number = from; number <= Math.min(to, stub.head, stub.maxLogBlock); number += 1) {
      for (const [index, { from: _, ...event }] of (events.get(number) ?? []).entries()) {
        const isMatch = topics.every(
          (topic, index) => topic === null || [topic].flat().includes(event.topics[index] ?? ""),
        );
        if (!isMatch || !addresses.has(event.address.toLowerCase())) continue;
        const blockHash = hashOf(number);
        blocksByHash.set(blockHash, number);
        result.push({ ...event, blockNumber: toHex(number), blockHash, logIndex: toHex(index) });
      }
    }
    if (result.length > stub.maxLogs) throw new Error("too many logs");
    return result;
  }

  function execute(method: string, params: readonly unknown[]): unknown {
    const [first] = params;
    switch (method) {
      case "eth_chainId":
        return toHex(chainId);
      case "eth_getBlockByNumber":
        return header(numberOf(first));
      case "eth_getBlockByHash": {
        const number = blocksByHash.get(String(first));
        return number === undefined || hashOf(number) !== first ? null : header(number);
      }
      case "eth_getTransactionByHash": {
        const from = senders.get(String(first));
        return from === undefined ? null : { from };
      }
      case "eth_getLogs":
        return logs(first as Filter);
      default:
        throw new Error(`unexpected ${method}`);
    }
  }

  async function respond(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown[]> {
    stub.requests.push(calls.map(({ method }) => method));
    stub.onRequest();
    // Lets the test change the state before the request, but not during it.
    await Promise.resolve();
    try {
      signal.throwIfAborted();
      return calls.map(({ method, params }) => stub.call(method, params));
    } catch (cause) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause });
    }
  }

  const client: ChainClient = {
    slug,
    send: async (method, params, signal) => (await respond([{ method, params }], signal))[0],
    sendBatch: async (calls, signal) => (await respond(calls, signal)).map((result) => ({ result })),
    async getLogs({ filter, range: { from, to }, newestFirst }, signal) {
      const blocks = Math.min(to - from + 1, stub.maxLogBlocks);
      const range = newestFirst ? { from: to - blocks + 1, to } : { from, to: from + blocks - 1 };
      const params = [{ ...filter, fromBlock: toHex(range.from), toBlock: toHex(range.to) }];
      const [result] = await respond([{ method: "eth_getLogs", params }], signal);
      return { result, range };
    },
  };

  const stub: ChainStub = {
    client,
    head: options.head,
    finalized: undefined,
    maxLogBlocks: Number.POSITIVE_INFINITY,
    maxLogs: Number.POSITIVE_INFINITY,
    maxVisibleBlock: Number.POSITIVE_INFINITY,
    maxLogBlock: Number.POSITIVE_INFINITY,
    requests: [],
    onRequest: () => {},
    setBlock(number, blockEvents) {
      events.set(number, blockEvents);
      for (const { transactionHash, from } of blockEvents) senders.set(transactionHash, from);
    },
    addBlocks(...blocks) {
      for (const blockEvents of blocks) {
        stub.head += 1;
        stub.setBlock(stub.head, blockEvents);
      }
    },
    reorg(depth, ...blocks) {
      for (let number = stub.head - depth + 1; number <= stub.head; number += 1) {
        versions.set(number, (versions.get(number) ?? 0) + 1);
        events.delete(number);
      }
      stub.head -= depth;
      stub.addBlocks(...blocks);
    },
    call: execute,
  };
  return stub;
}

/**
 * Serves chains over HTTP, each under its slug.
 * @param onRequest runs before each response with the slug of the chain
 */
export async function serveChains(
  stubs: readonly ChainStub[],
  onRequest: (slug: string) => void,
): Promise<HttpStub & { urlOf(slug: string): string }> {
  const server = await startHttpStub((request, response) => void serve(request, response));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body: unknown = JSON.parse(await readBody(request));
    const slug = request.url?.slice(1) ?? "";
    onRequest(slug);
    const stub = stubs.find(({ client }) => client.slug === slug);
    const responses = [body].flat().map((call) => {
      const { id, method, params } = call as RpcCall & { readonly id: number };
      try {
        return { jsonrpc: "2.0", id, result: stub?.call(method, params) };
      } catch (error) {
        return { jsonrpc: "2.0", id, error: { code: -32000, message: String(error) } };
      }
    });
    sendJson(response, Array.isArray(body) ? responses : responses[0]);
  }

  return { ...server, urlOf: (slug) => `${server.url}/${slug}` };
}

interface Filter {
  readonly fromBlock: string;
  readonly toBlock: string;
  readonly address: string | readonly string[];
  readonly topics: readonly (string | readonly string[] | null)[];
}

function toHex(number: number): string {
  return `0x${number.toString(16)}`;
}
