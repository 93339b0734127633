import { setTimeout as sleep } from "node:timers/promises";
import { toHexQuantity } from "../chain/json-rpc.js";
import type { LocalChain, LocalChains } from "../chain/local-chains.js";
import type { EventLog, TransactionReceipt } from "../chain/transactions.js";
import { deliverTransfer } from "./deliver-transfer.js";
import { listBridges, parseSentTransfers, type SentTransfer, transferSentTopics } from "./sent-transfer.js";

export interface Bonder {
  /** Begins to deliver new transfers, each some seconds after it was sent. */
  start(): void;
  /** Ends that, after what is being delivered. */
  stop(): Promise<void>;
  /**
   * Delivers every transfer sent so far and not delivered yet, at once. Works whether started or not.
   * @throws Error when a chain cannot be read, after everything that is known of the others is delivered.
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
 * The bonder of every route, the relayer from ethereum and the one who brings CCTP messages over, in one. It knows
 * only transfers sent after its creation: those that stood there before stay as they are.
 */
export async function createBonder(options: BonderOptions): Promise<Bonder> {
  const { chains, delaySeconds = 8, log = () => {}, now = Date.now } = options;
  const nextBlock = new Map<string, number>();
  for (const chain of chains.values()) nextBlock.set(chain.slug, (await readBlockNumber(chain)) + 1);
  const bridges = new Map([...chains.keys()].map((slug) => [slug, [...listBridges(slug).keys()]]));

  /** What keeps a chain from being read, by slug. */
  const troubles = new Map<string, string>();
  let waiting: { readonly transfer: SentTransfer; readonly dueAt: number }[] = [];
  let turn: Promise<void> = Promise.resolve();
  let stopping: AbortController | undefined;
  let loop: Promise<void> | undefined;

  async function look(chain: LocalChain): Promise<void> {
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
    const found: SentTransfer[] = [];
    for (const hash of new Set(logs.map((entry) => entry.transactionHash))) {
      const receipt = (await chain.rpc("eth_getTransactionReceipt", [hash])) as TransactionReceipt;
      found.push(...parseSentTransfers(chain.slug, receipt.logs));
    }
    // Only now: where a read fails, the next look begins at the same block again.
    nextBlock.set(chain.slug, head + 1);
    waiting.push(...found.map((transfer) => ({ transfer, dueAt: now() + delaySeconds * 1_000 })));
  }

  /** Says only what is new: a dead chain would fill the log. */
  async function lookAndTell(chain: LocalChain): Promise<void> {
    const trouble = await look(chain).then(() => undefined, errorMessage);
    if (trouble === troubles.get(chain.slug)) return;
    if (trouble === undefined) {
      troubles.delete(chain.slug);
      log(`${chain.slug} can be read again`);
    } else {
      troubles.set(chain.slug, trouble);
      log(`${chain.slug} cannot be read: ${trouble}`);
    }
  }

  async function deliverDue(dueBy: number): Promise<void> {
    const due = waiting.filter((entry) => entry.dueAt <= dueBy);
    waiting = waiting.filter((entry) => entry.dueAt > dueBy);
    for (const { transfer } of due) {
      const { token, source, destination } = transfer;
      const route = `${token} ${source} -> ${destination}`;
      try {
        const receipt = await deliverTransfer(chains, transfer);
        log(receipt === undefined ? `left alone: ${route}` : `delivered: ${route} ${receipt.transactionHash}`);
      } catch (error) {
        log(`could not deliver: ${route}: ${errorMessage(error)}`);
      }
    }
  }

  /** One look and one delivery at a time, so that nothing is delivered twice. */
  function work(dueBy: () => number): Promise<void> {
    turn = turn.then(async () => {
      await Promise.all([...chains.values()].map(lookAndTell));
      await deliverDue(dueBy());
    });
    return turn;
  }

  return {
    start() {
      if (stopping !== undefined) return;
      stopping = new AbortController();
      const { signal } = stopping;
      loop = (async () => {
        while (!signal.aborted) {
          await work(now);
          await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
        }
      })();
    },
    async stop() {
      stopping?.abort();
      stopping = undefined;
      await loop;
      await turn;
    },
    async deliverPending() {
      await work(() => Number.POSITIVE_INFINITY);
      const [trouble] = troubles;
      if (trouble !== undefined) throw new Error(`${trouble[0]} cannot be read: ${trouble[1]}`);
    },
  };
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function readBlockNumber(chain: LocalChain): Promise<number> {
  return Number(await chain.rpc("eth_blockNumber"));
}
