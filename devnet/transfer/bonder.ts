import { setTimeout as sleep } from "node:timers/promises";
import { toQuantity } from "../chain/json-rpc.js";
import type { LocalChain, LocalChains } from "../chain/local-chains.js";
import type { Log, Receipt } from "../chain/transactions.js";
import { deliver } from "./deliver-transfer.js";
import { bridgesOn, readSentTransfers, type SentTransfer, sentTopics } from "./sent-transfer.js";

export interface Bonder {
  /** Begins to deliver new transfers, each some seconds after it was sent. */
  start(): void;
  /** Ends that, after what is being delivered. */
  stop(): Promise<void>;
  /**
   * Delivers every transfer sent so far and not delivered yet, at once. Works whether started or not.
   * @throws Error when a chain cannot be read, after everything that is known of the others is delivered.
   */
  bondAll(): Promise<void>;
}

export interface BonderOptions {
  readonly chains: LocalChains;
  /** How long a transfer stays pending, in seconds. */
  readonly delaySeconds?: number;
  readonly log?: (line: string) => void;
  readonly now?: () => number;
}

const lookEveryMs = 1_000;

/**
 * The bonder of every route, the relayer from ethereum and the one who brings CCTP messages over, in one. It knows
 * only transfers sent after its creation: those that stood there before stay as they are.
 */
export async function createBonder(options: BonderOptions): Promise<Bonder> {
  const { chains, delaySeconds = 8, log = () => {}, now = Date.now } = options;
  const nextBlock = new Map<string, number>();
  for (const chain of chains.values()) nextBlock.set(chain.slug, (await headOf(chain)) + 1);
  const bridges = new Map([...chains.keys()].map((slug) => [slug, [...bridgesOn(slug).keys()]]));

  /** What keeps a chain from being read, by slug. */
  const troubles = new Map<string, string>();
  let waiting: { readonly transfer: SentTransfer; readonly dueAt: number }[] = [];
  let turn: Promise<void> = Promise.resolve();
  let stopping: AbortController | undefined;
  let loop: Promise<void> | undefined;

  async function look(chain: LocalChain): Promise<void> {
    const from = nextBlock.get(chain.slug) ?? 0;
    const head = await headOf(chain);
    if (head < from) return;
    const logs = (await chain.rpc("eth_getLogs", [
      {
        fromBlock: toQuantity(from),
        toBlock: toQuantity(head),
        address: bridges.get(chain.slug),
        topics: [sentTopics],
      },
    ])) as (Log & { readonly transactionHash: string })[];
    const found: SentTransfer[] = [];
    for (const hash of new Set(logs.map((entry) => entry.transactionHash))) {
      const receipt = (await chain.rpc("eth_getTransactionReceipt", [hash])) as Receipt;
      found.push(...readSentTransfers(chain.slug, receipt.logs));
    }
    // Only now: where a read fails, the next look begins at the same block again.
    nextBlock.set(chain.slug, head + 1);
    waiting.push(...found.map((transfer) => ({ transfer, dueAt: now() + delaySeconds * 1_000 })));
  }

  /** Says only what is new: a dead chain would fill the log. */
  async function lookAndTell(chain: LocalChain): Promise<void> {
    const trouble = await look(chain).then(() => undefined, messageOf);
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
        const receipt = await deliver(chains, transfer);
        log(receipt === undefined ? `left alone: ${route}` : `delivered: ${route} ${receipt.transactionHash}`);
      } catch (error) {
        log(`could not deliver: ${route}: ${messageOf(error)}`);
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
          await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
        }
      })();
    },
    async stop() {
      stopping?.abort();
      stopping = undefined;
      await loop;
      await turn;
    },
    async bondAll() {
      await work(() => Number.POSITIVE_INFINITY);
      const [trouble] = troubles;
      if (trouble !== undefined) throw new Error(`${trouble[0]} cannot be read: ${trouble[1]}`);
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function headOf(chain: LocalChain): Promise<number> {
  return Number(await chain.rpc("eth_blockNumber"));
}
