import type { ChainClient } from "../chain/chain-client.js";
import type { ChainAccess } from "../chain/chains.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Quote } from "./math/quote.js";
import type { SdkEngine } from "./sdk-engine.js";
import type { GivenQuote } from "./snapshot-engine.js";
import type { ChainFacts } from "./state/chain-state.js";

/** What the SDK made of a quote that was given. */
export interface Verdict {
  readonly given: GivenQuote;
  /** undefined: the SDK could not say, as when the block is gone. */
  readonly bySdk: Quote | undefined;
  readonly isEqual: boolean;
  /** Verdicts since the start, this one among them. */
  readonly counts: VerdictCounts;
}

export interface VerdictCounts {
  readonly equal: number;
  readonly different: number;
  readonly unknown: number;
}

export interface VerificationOptions {
  /** Share of quotes, 0 to 1. */
  readonly rate: number;
  readonly engine: SdkEngine;
  readonly chains: (network: NetworkSlug) => ChainAccess;
  readonly onVerdict: (verdict: Verdict) => void;
  /** 0 to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Quotes that wait to be verified: the SDK takes milliseconds of CPU for each, and no caller is to notice. */
const mostWaiting = 100;

const compared = ["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const;

/** Takes quotes that were given to callers and has the SDK compute a share of them again, one after the other. */
export function createVerification(options: VerificationOptions): (given: GivenQuote) => void {
  const { rate, engine, chains, onVerdict, random, signal } = options;
  const waiting: GivenQuote[] = [];
  let isBusy = false;
  const counts = { equal: 0, different: 0, unknown: 0 };

  async function work(): Promise<void> {
    isBusy = true;
    for (let given = waiting.shift(); given !== undefined && !signal.aborted; given = waiting.shift()) {
      const verdict = await judge(given);
      if (!signal.aborted) onVerdict(verdict);
    }
    isBusy = false;
  }

  async function judge(given: GivenQuote): Promise<Verdict> {
    const { request, quote, source, destination } = given;
    const access = asRead(
      chains(request.network),
      new Map([
        [request.source.slug, source],
        [request.destination.slug, destination],
      ]),
    );
    // Deadlines have a part in the price of deliveries alone.
    const nowSeconds = destination?.nowSeconds ?? 0;
    const bySdk = await engine.quoteAt(request, access, nowSeconds, signal).catch(() => undefined);
    const isEqual = bySdk !== undefined && compared.every((field) => bySdk[field] === quote[field]);
    counts[bySdk === undefined ? "unknown" : isEqual ? "equal" : "different"] += 1;
    return { given, bySdk, isEqual, counts: { ...counts } };
  }

  return (given) => {
    if (random() >= rate || waiting.length >= mostWaiting) return;
    waiting.push(given);
    if (!isBusy) void work();
  };
}

/** The chains as they were when facts were read: at those blocks, and at that price of gas. */
function asRead(access: ChainAccess, facts: ReadonlyMap<string, ChainFacts | undefined>): ChainAccess {
  return {
    ...access,
    client(slug) {
      const client = access.client(slug);
      const read = facts.get(slug);
      return read === undefined ? client : pinned(client, read);
    },
  };
}

function pinned(client: ChainClient, facts: ChainFacts): ChainClient {
  const block = `0x${facts.block.number.toString(16)}`;
  return {
    ...client,
    async send(method, params, signal) {
      if (method === "eth_gasPrice" && facts.gasPrice !== undefined) return `0x${facts.gasPrice.toString(16)}`;
      const [call] = params;
      return client.send(
        method,
        method === "eth_call" || method === "eth_estimateGas" ? [call, block] : params,
        signal,
      );
    },
  };
}
