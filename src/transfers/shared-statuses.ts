import { usesCustomEndpoints } from "../chain/chains.js";
import type { Network } from "../hop/networks.js";
import { parseShared, printShared, type SharedCache } from "../shared-state/shared-cache.js";
import type { TransferQuery, TransferSource } from "./sources/transfer-source.js";
import {
  buildTransferStatus,
  isImmutableStatus,
  type SentTransfer,
  type StatusDetails,
  type TransferStatus,
} from "./status.js";

type PrintedStatus = Pick<TransferStatus, "delivery"> & {
  readonly details: StatusDetails;
  readonly sent: Omit<SentTransfer, "source" | "destination"> & Readonly<Record<"source" | "destination", string>>;
};

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

/** Prints a status, with its chains by their slugs. */
export function printStatus({ sent, delivery, state: _, ...details }: TransferStatus): string {
  return printShared({
    details,
    delivery,
    sent: { ...sent, source: sent.source.slug, destination: sent.destination.slug },
  });
}

/**
 * Parses what `printStatus` has printed.
 * @param query that the status has to answer
 * @throws Error for anything but a final status of the network
 */
export function parseFinalStatus(text: string, network: Network, query: TransferQuery): TransferStatus {
  const { sent, delivery, details } = parseShared(text) as PrintedStatus;
  const source = network.chains.get(sent.source);
  const destination = network.chains.get(sent.destination);
  if (source === undefined || destination === undefined) throw new TypeError("not a chain of the network");
  const status = buildTransferStatus({ ...sent, source, destination }, delivery, details);
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
