import { usesCustomEndpoints } from "../chain/chains.js";
import type { Network } from "../hop/networks.js";
import type { SharedCache } from "../shared-state/shared-cache.js";
import type { TransferQuery, TransferSource } from "./sources/transfer-source.js";
import { buildTransferStatus, isImmutableStatus, type TransferStatus } from "./status.js";

/** How long a final status is kept for other processes. */
const STATUS_TTL_MS = 30 * 60_000;

/**
 * Decorates a resolver: a final status that another process has read is not read again. Says nothing of lookups that use a
 * caller's own endpoint, neither to others nor by them.
 */
export function createSharedResolver(
  resolver: TransferSource,
  cache: Pick<SharedCache, "get" | "set">,
): TransferSource {
  return {
    async resolve(query, context) {
      const { network, chains } = context;
      if (usesCustomEndpoints(chains, network.chains.keys())) return resolver.resolve(query, context);
      const key = `status ${network.slug} ${query.transactionHash ?? ""} ${query.transferId ?? ""}`;
      const shared = await cache.get(key);
      const known = shared && tryParseFinalStatus(shared.text, network, query);
      if (known !== undefined) return known;
      const status = await resolver.resolve(query, context);
      if (status !== undefined && isImmutableStatus(status))
        cache.set(key, printStatus(status), { ttlMs: STATUS_TTL_MS, ageMs: 0, rank: 0 });
      return status;
    },
  };
}

function tryParseFinalStatus(text: string, network: Network, query: TransferQuery): TransferStatus | undefined {
  try {
    return parseFinalStatus(text, network, query);
  } catch {
    return undefined;
  }
}

/** Prints a status as JSON. */
export function printStatus(status: TransferStatus): string {
  return JSON.stringify(toPlainStatus(status));
}

function toPlainStatus({ sent, delivery, state: _, ...details }: TransferStatus) {
  const { source, destination, event, ...transfer } = sent;
  return {
    ...details,
    delivery,
    sent: { ...transfer, source: source.slug, destination: destination.slug },
    event: {
      ...event,
      amount: String(event.amount),
      amountOutMin: String(event.amountOutMin),
      deadline: String(event.deadline),
      bonderFee: String(event.bonderFee),
    },
  };
}

/**
 * Parses what `printStatus` of this version has printed: the names of the keys contain the version.
 * @param query that the status has to answer: a client whose replies are out of step returns the text of another key
 * @throws Error for anything but a final status
 */
export function parseFinalStatus(text: string, network: Network, query: TransferQuery): TransferStatus {
  const { sent, delivery, event, ...details } = JSON.parse(text) as ReturnType<typeof toPlainStatus>;
  const source = network.chains.get(sent.source);
  const destination = network.chains.get(sent.destination);
  if (source === undefined || destination === undefined) throw new TypeError("not a chain of the network");
  const amounts = {
    amount: BigInt(event.amount),
    amountOutMin: BigInt(event.amountOutMin),
    deadline: BigInt(event.deadline),
    bonderFee: BigInt(event.bonderFee),
  };
  const transfer = { ...sent, source, destination, event: { ...event, ...amounts } };
  const status = buildTransferStatus(transfer, delivery, details);
  if (!isImmutableStatus(status) || !answersQuery(status, query)) throw new TypeError("not the final status");
  return status;
}

function answersQuery({ sent, delivery }: TransferStatus, { transactionHash, transferId }: TransferQuery): boolean {
  const hashes = [sent.transactionHash, delivery?.transactionHash];
  return (
    (transactionHash === undefined || hashes.includes(transactionHash)) &&
    (transferId === undefined || sent.id === transferId)
  );
}
