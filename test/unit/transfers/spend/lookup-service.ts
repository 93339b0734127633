import type { ServerResponse } from "node:http";
import { ChainClients, type NetworkChainClients } from "../../../../src/chain/chains.js";
import type { RpcLog } from "../../../../src/chain/json-rpc/parse-results.js";
import { AdaptiveLimiter } from "../../../../src/resilience/adaptive-limiter.js";
import { SingleFlight } from "../../../../src/resilience/single-flight.js";
import { SourcesResolver } from "../../../../src/transfers/resolver.js";
import type { LookupResult, TransferQuery } from "../../../../src/transfers/sources/transfer-source.js";
import { BudgetedResolver } from "../../../../src/transfers/spend/budgeted-resolver.js";
import { LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import { StatusCache } from "../../../../src/transfers/status-cache.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { readBody, sendJson, startHttpStub } from "../../../support/stubs/http-stub.js";
import {
  createLookupContext,
  createTransferChainStub,
  type TransferChainStub,
} from "../../../support/stubs/transfer-fixtures.js";
import { mainnetNetwork } from "../index/support/hop-events.js";
import { createTestChainSource } from "../sources/chain/search-fixtures.js";

// Transfer lookups over nodes that count their requests, with all that stands in between: cache, resolver, chain clients.

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly [string & { topics: (string | string[] | null)[]; fromBlock: string; toBlock: string }];
}

/** A node that serves one chain over HTTP. Its `methods` are those of the last call of each request. */
export interface LookupNode extends TransferChainStub {
  /** Whether the rejection of a log search that is too wide names the limit. */
  namesLimit: boolean;
  serve(body: string, response: ServerResponse): Promise<void>;
}

function createLookupNode(slug: string, chainId: number, options: { head?: number; maxLogBlocks?: number }) {
  const chain = createTransferChainStub(slug, { ...options, blockSeconds: 2 });

  function searchLogs({ topics, fromBlock, toBlock }: Call["params"][0]): readonly RpcLog[] {
    const [from, to] = [Number(fromBlock), toBlock === "latest" ? node.head : Number(toBlock)];
    if (to - from >= node.maxLogBlocks) {
      throw new Error(node.namesLimit ? `limited to a ${node.maxLogBlocks} blocks range` : "query is too large");
    }
    node.searchedRanges.push({ from, to });
    const logs = node.call("eth_getLogs", []) as readonly RpcLog[];
    return logs.filter(({ topics: actual, blockNumber }) => {
      const isInRange = Number(blockNumber) >= from && Number(blockNumber) <= to;
      return isInRange && topics.every((topic, at) => topic === null || [topic].flat().includes(actual[at] ?? ""));
    });
  }

  function respond({ method, params }: Call): unknown {
    if (method === "eth_chainId") return `0x${chainId.toString(16)}`;
    if (method === "eth_getLogs") return searchLogs(params[0]);
    node.finalized = node.head - 100;
    return node.call(method, params);
  }

  const node: LookupNode = Object.assign(chain, {
    namesLimit: true,
    async serve(body: string, response: ServerResponse) {
      const message = JSON.parse(body) as Call | Call[];
      const calls = [message].flat();
      const method = calls.at(-1)?.method ?? "";
      node.methods.push(method);
      await node.beforeResponse(method);
      const responses = calls.map((each) => {
        try {
          return { jsonrpc: "2.0", id: each.id, result: respond(each) };
        } catch (error) {
          return { jsonrpc: "2.0", id: each.id, error: { code: -32005, message: (error as Error).message } };
        }
      });
      sendJson(response, Array.isArray(message) ? responses : responses[0]);
    },
  });
  return node;
}

/** Starts lookups on mainnet over one node for each chain, and nodes of a caller at `customUrlOf`. */
export async function startLookupService(options: { readonly head?: number; readonly maxLogBlocks?: number } = {}) {
  const clock = { now: 1_000_000 };
  const now = () => clock.now;
  const createNodes = () =>
    new Map([...mainnetNetwork.chains].map(([slug, { chainId }]) => [slug, createLookupNode(slug, chainId, options)]));
  const [nodes, customNodes] = [createNodes(), createNodes()];
  const server = closeAfterTest(
    await startHttpStub((request, response) => {
      const [, kind, slug = ""] = request.url?.split("/") ?? [];
      void readBody(request).then((body) => (kind === "custom" ? customNodes : nodes).get(slug)?.serve(body, response));
    }),
  );
  const endpoints = new Map(
    [...mainnetNetwork.chains].map(([slug, { chainId }]) => [slug, { chainId, urls: [`${server.url}/own/${slug}`] }]),
  );
  const clients: ChainClients = closeAfterTest(
    new ChainClients({
      networks: { mainnet: endpoints },
      customUrlPolicy: "any",
      // So that no request is repeated after a few seconds, however slow the machine is.
      callerTimeoutMs: 600_000,
      onFailure: () => {},
    }),
  );
  const closing = new AbortController();
  closeAfterTest({ close: () => closing.abort() });
  const chain = createTestChainSource(now, closing.signal, now);
  const sources = new SourcesResolver(chain, undefined, undefined);
  const cache = new StatusCache({
    index: undefined,
    resolver: new BudgetedResolver(sources, new LookupBudgets({ now })),
    singleFlight: new SingleFlight(closing.signal),
    limiter: new AdaptiveLimiter(now),
    // Longer than any test: what ends a lookup here is its budget.
    timeoutMs: 600_000,
    now,
  });

  interface FindOptions {
    readonly caller?: string;
    readonly signal?: AbortSignal;
    /** Chains for which the caller names its own node. */
    readonly custom?: readonly string[];
  }

  async function find(query: Partial<TransferQuery>, options: FindOptions = {}): Promise<LookupResult> {
    const { caller = "a", signal = closing.signal, custom = [] } = options;
    const all = { transferId: undefined, transactionHash: undefined, ...query };
    const run = async (chains: NetworkChainClients): Promise<LookupResult> =>
      cache.find(all, createLookupContext({ chains, caller, signal, remainingMs: () => 600_000 }));
    if (custom.length === 0) return run(clients.forNetwork("mainnet"));
    const urls = new Map(custom.map((slug) => [slug, `${server.url}/custom/${slug}`]));
    return clients.withCustomEndpoints("mainnet", urls, run, { caller, signal });
  }

  const getNode = (slug: string, all = nodes): LookupNode => {
    const node = all.get(slug);
    if (node === undefined) throw new Error(`no chain ${slug}`);
    return node;
  };
  return {
    clock,
    cache,
    chains: clients,
    find,
    getNode,
    getCustomNode: (slug: string) => getNode(slug, customNodes),
    nodes: [...nodes.values()] as readonly LookupNode[],
    /** Runs a lookup; returns the number of requests that the configured nodes got, and how the lookup ended. */
    async measure(...args: Parameters<typeof find>) {
      const count = (): number => [...nodes.values()].reduce((sum, { methods }) => sum + methods.length, 0);
      const before = count();
      const outcome = await find(...args).then(
        (status) => status?.state ?? "not found",
        (error: unknown) => error as { readonly reason?: string; readonly message: string },
      );
      return { requests: count() - before, outcome };
    },
  };
}
