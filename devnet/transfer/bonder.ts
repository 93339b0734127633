import { setTimeout as sleep } from "node:timers/promises";
import { toHexQuantity } from "../chain/json-rpc.js";
import type { LocalChain, LocalChains } from "../chain/local-chains.js";
import type { EventLog, TransactionReceipt } from "../chain/transactions.js";
import { deliverTransfer } from "./deliver-transfer.js";
import { listBridges, parseSentTransfers, type SentTransfer, transferSentTopics } from "./sent-transfer.js";

export interface Bonder {
  /** Starts to deliver new transfers, each some seconds after it was sent. */
  start(): void;
  /** Stops, after the delivery that is in progress. */
  stop(): Promise<void>;
  /**
   * Delivers all pending transfers immediately, whether started or not.
   * @throws Error when a chain cannot be read, after the deliveries on the other chains
   */
  deliverPending(): Promise<void>;
}

export interface BonderOptions {
  readonly chains: LocalChains;
  /** How long a transfer stays pending, in seconds. */
  readonly delaySeconds?: number;
  readonly log?: (line: string) => void;
  readonly now?: () => number;
}

const POLL_INTERVAL_MS = 1_000;

/**
 * Creates the bonder of every route, which is also the relayer from ethereum and of CCTP messages. It delivers only transfers
 * sent after its creation: seeded pending transfers stay pending.
 */
export async function createBonder(options: BonderOptions): Promise<Bonder> {
  const { chains, delaySeconds = 8, log = () => {}, now = Date.now } = options;
  const nextBlock = new Map<string, number>();
  for (const chain of chains.values()) nextBlock.set(chain.slug, (await readBlockNumber(chain)) + 1);
  const bridges = new Map([...chains.keys()].map((slug) => [slug, [...listBridges(slug).keys()]]));

  /** Read errors by chain slug. */
  const readErrors = new Map<string, string>();
  let pending: { readonly transfer: SentTransfer; readonly sentBy: string; readonly dueAt: number }[] = [];
  let lastRun: Promise<void> = Promise.resolve();
  let stopping: AbortController | undefined;
  let loop: Promise<void> | undefined;

  async function readNewTransfers(chain: LocalChain): Promise<void> {
    const from = nextBlock.get(chain.slug) ?? 0;
    const head = await readBlockNumber(chain);
    if (head < from) return;
    const logs = (await chain.rpc("eth_getLogs", [
      {
        fromBlock: toHexQuantity(from),
        toBlock: toHexQuantity(head),
        address: bridges.get(chain.slug),
        topics: [transferSentTopics],
      },
    ])) as (EventLog & { readonly transactionHash: string })[];
    const sent: { readonly transfer: SentTransfer; readonly sentBy: string }[] = [];
    for (const hash of new Set(logs.map((entry) => entry.transactionHash))) {
      const receipt = (await chain.rpc("eth_getTransactionReceipt", [hash])) as TransactionReceipt;
      sent.push(...parseSentTransfers(chain.slug, receipt.logs).map((transfer) => ({ transfer, sentBy: hash })));
    }
    // Advanced only after all reads: a failed read is retried from the same block.
    nextBlock.set(chain.slug, head + 1);
    pending.push(...sent.map((entry) => ({ ...entry, dueAt: now() + delaySeconds * 1_000 })));
  }

  /** Logs only changes: a dead chain would fill the log. */
  async function readAndReport(chain: LocalChain): Promise<void> {
    const error = await readNewTransfers(chain).then(() => undefined, errorMessage);
    if (error === readErrors.get(chain.slug)) return;
    if (error === undefined) {
      readErrors.delete(chain.slug);
      log(`${chain.slug} can be read again`);
    } else {
      readErrors.set(chain.slug, error);
      log(`${chain.slug} cannot be read: ${error}`);
    }
  }

  async function deliverDue(dueBy: number): Promise<void> {
    const due = pending.filter((entry) => entry.dueAt <= dueBy);
    pending = pending.filter((entry) => entry.dueAt > dueBy);
    for (const { transfer, sentBy } of due) {
      const { token, source, destination } = transfer;
      const route = `${token} ${source} -> ${destination}, sent by ${sentBy}`;
      try {
        const receipt = await deliverTransfer(chains, transfer);
        log(
          receipt === undefined
            ? `not bondable: ${route}`
            : `delivered: ${route}, received by ${receipt.transactionHash}`,
        );
      } catch (error) {
        log(`could not deliver: ${route}: ${errorMessage(error)}`);
      }
    }
  }

  /** Runs one read and delivery at a time, so that nothing is delivered twice. */
  function enqueueRun(dueBy: () => number): Promise<void> {
    lastRun = lastRun.then(async () => {
      await Promise.all([...chains.values()].map(readAndReport));
      await deliverDue(dueBy());
    });
    return lastRun;
  }

  return {
    start() {
      if (stopping !== undefined) return;
      stopping = new AbortController();
      const { signal } = stopping;
      loop = (async () => {
        while (!signal.aborted) {
          await enqueueRun(now);
          await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
        }
      })();
    },
    async stop() {
      stopping?.abort();
      stopping = undefined;
      await loop;
      await lastRun;
    },
    async deliverPending() {
      await enqueueRun(() => Number.POSITIVE_INFINITY);
      const [failure] = readErrors;
      if (failure !== undefined) throw new Error(`${failure[0]} cannot be read: ${failure[1]}`);
    },
  };
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function readBlockNumber(chain: LocalChain): Promise<number> {
  return Number(await chain.rpc("eth_blockNumber"));
}
