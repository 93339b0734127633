import type { BlockRange, ChainClient, LogFilter } from "../../../../src/chain/chain-client.js";
import type { Log, RpcLog } from "../../../../src/chain/json-rpc/parse-results.js";

const word = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
export const logAddress = `0x${"a1".repeat(20)}`;
export const logTopic = word(7);
export const logFilter: LogFilter = { address: logAddress, topics: [logTopic] };

/** Creates a log of a block as nodes return it. */
export function createRpcLog(block: number, index = 0): RpcLog {
  return {
    address: logAddress,
    topics: [logTopic],
    data: "0x",
    blockNumber: `0x${block.toString(16)}`,
    blockHash: word(block + 1),
    logIndex: `0x${index.toString(16)}`,
    transactionHash: word(block * 1_000 + index),
  };
}

/** Creates the parsed log of a block. */
export const createLog = (block: number, index = 0): Log => ({
  ...createRpcLog(block, index),
  blockNumber: block,
  logIndex: index,
});

export const blockNumbersOf = (logs: readonly Log[]): number[] => logs.map(({ blockNumber }) => blockNumber);

export function createHeader(number: number, timestamp = number) {
  return { number: `0x${number.toString(16)}`, hash: word(number + 1), timestamp: `0x${timestamp.toString(16)}` };
}

/** Creates a client of a chain that rejects all but what it is given. */
export const createClientStub = (methods: Partial<ChainClient>): ChainClient => ({
  slug: "optimism",
  send: () => Promise.reject(new Error("no single calls")),
  sendBatch: () => Promise.reject(new Error("no batches")),
  getLogs: () => Promise.reject(new Error("no logs")),
  ...methods,
});

/** Creates a chain with logs in some blocks, whose only endpoint searches at most `maxLogBlocks` blocks per request. */
export function createLogChainStub(
  blocks: readonly number[],
  { maxLogBlocks = Number.POSITIVE_INFINITY, head = 100_000 } = {},
) {
  const state = {
    maxLogBlocks,
    head,
    /** Searched ranges, in order of the requests. */
    pages: [] as BlockRange[],
    concurrent: 0,
    maxConcurrent: 0,
    /** Delays a search until it resolves. */
    hold: (_: BlockRange): Promise<void> => Promise.resolve(),
    abortedSearches: 0,
  };
  const client = createClientStub({
    send: async () => createHeader(state.head),
    async getLogs({ range: { from, to }, newestFirst = false }, signal) {
      const width = to - from + 1;
      if (width > state.maxLogBlocks && to === Number.POSITIVE_INFINITY) return undefined;
      const cut = newestFirst ? { from: to - state.maxLogBlocks + 1, to } : { from, to: from + state.maxLogBlocks - 1 };
      const range = width > state.maxLogBlocks ? cut : { from, to };
      state.pages.push(range);
      state.concurrent += 1;
      state.maxConcurrent = Math.max(state.maxConcurrent, state.concurrent);
      let leave = (): void => {};
      const left = new Promise<never>((_, reject) => {
        leave = () => {
          state.abortedSearches += 1;
          reject(new Error("left"));
        };
        signal.addEventListener("abort", leave);
      });
      await Promise.race([state.hold(range), left]).finally(() => {
        signal.removeEventListener("abort", leave);
        state.concurrent -= 1;
      });
      // Unordered, as nodes may return them.
      const found = blocks.filter((block) => block >= range.from && block <= range.to).reverse();
      return { result: found.map((block) => createRpcLog(block)), range };
    },
  });
  return { client, state };
}
