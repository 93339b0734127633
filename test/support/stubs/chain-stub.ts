import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ChainClient, RpcCall } from "../../../src/chain/chain-client.js";
import type { RpcLog } from "../../../src/chain/json-rpc/parse-results.js";
import { RpcError } from "../../../src/chain/json-rpc/rpc-codec.js";
import { ServiceError } from "../../../src/errors.js";
import { type HttpStub, readBody, sendJson, startHttpStub } from "./http-stub.js";

/** What a test says of an event; the chain adds where it stands. */
export interface StubEvent {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
  /** Sender of the transaction. */
  readonly from: string;
}

/** A chain without contracts: blocks that hold the events which a test puts there. */
export interface ChainStub {
  readonly client: ChainClient;
  /** Number of the newest block. */
  head: number;
  /** Number of the newest block that cannot be undone; undefined: the tag is refused. */
  finalized: number | undefined;
  /** Searches of more blocks, or with more logs in their answer, are refused. */
  maxLogBlocks: number;
  maxLogs: number;
  /** Blocks above this one are not in its answers, as if it had not heard of them; its logs are. */
  maxVisibleBlock: number;
  /** Logs above this block are left out of its answers, without a word. */
  maxLogBlock: number;
  /** The methods of each request so far. */
  readonly requests: string[][];
  /** Runs before each request is answered. */
  onRequest: () => void;
  setBlock(number: number, events: readonly StubEvent[]): void;
  /** Adds blocks with the events of each. */
  addBlocks(...blocks: readonly (readonly StubEvent[])[]): void;
  /** Puts other blocks in the place of the newest ones: as many as are undone, or more. */
  reorg(depth: number, ...blocks: readonly (readonly StubEvent[])[]): void;
  /** Answers one call, as the node would. @throws Error for what it refuses */
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
    const addresses = new Set([address].flat().map((each) => each.toLowerCase()));
    const found: RpcLog[] = [];
    for (let number = from; number <= Math.min(to, stub.head, stub.maxLogBlock); number += 1) {
      for (const [index, { from: _, ...event }] of (events.get(number) ?? []).entries()) {
        const isWanted = topics.every(
          (wanted, place) => wanted === null || [wanted].flat().includes(event.topics[place] ?? ""),
        );
        if (!isWanted || !addresses.has(event.address.toLowerCase())) continue;
        const blockHash = hashOf(number);
        blocksByHash.set(blockHash, number);
        found.push({ ...event, blockNumber: toHex(number), blockHash, logIndex: toHex(index) });
      }
    }
    if (found.length > stub.maxLogs) throw new Error("too many logs");
    return found;
  }

  function answer(method: string, params: readonly unknown[]): unknown {
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

  async function ask(calls: readonly RpcCall[], signal: AbortSignal): Promise<unknown[]> {
    stub.requests.push(calls.map(({ method }) => method));
    stub.onRequest();
    // What a test changes between requests is not changed within one.
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
    send: async (method, params, signal) => (await ask([{ method, params }], signal))[0],
    sendBatch: async (calls, signal) => (await ask(calls, signal)).map((result) => ({ result })),
    async getLogs(filter, { from, to }, newestFirst, signal) {
      const blocks = Math.min(to - from + 1, stub.maxLogBlocks);
      const range = newestFirst ? { from: to - blocks + 1, to } : { from, to: from + blocks - 1 };
      const params = [{ ...filter, fromBlock: toHex(range.from), toBlock: toHex(range.to) }];
      const [result] = await ask([{ method: "eth_getLogs", params }], signal);
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
    setBlock(number, some) {
      events.set(number, some);
      for (const { transactionHash, from } of some) senders.set(transactionHash, from);
    },
    addBlocks(...blocks) {
      for (const some of blocks) {
        stub.head += 1;
        stub.setBlock(stub.head, some);
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
    call: answer,
  };
  return stub;
}

/** Serves chains over HTTP, each under its slug. @param onRequest runs before each answer, told which chain is asked */
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
    const answers = [body].flat().map((call) => {
      const { id, method, params } = call as RpcCall & { readonly id: number };
      try {
        return { jsonrpc: "2.0", id, result: stub?.call(method, params) };
      } catch (error) {
        return { jsonrpc: "2.0", id, error: { code: -32000, message: String(error) } };
      }
    });
    sendJson(response, Array.isArray(body) ? answers : answers[0]);
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
