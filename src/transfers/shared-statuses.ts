import type { Network } from "../hop/networks.js";
import { parseShared, printShared, type SharedCache } from "../shared-state/shared-cache.js";
import type { TransferSource } from "./sources/transfer-source.js";
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
      const { network } = context;
      if (context.isPrivate) return resolver.resolve(query, context);
      const key = `status ${network.slug} ${query.transactionHash ?? ""} ${query.transferId ?? ""}`;
      const shared = await cache.get(key);
      const known = shared && parseStatus(shared.text, network);
      if (known !== undefined) return known;
      const status = await resolver.resolve(query, context);
      if (status !== undefined && isImmutableStatus(status))
        cache.set(key, printStatus(status), { ttlMs: STATUS_TTL_MS, ageMs: 0, rank: 0 });
      return status;
    },
  };
}

/** Prints a status, with its chains by their slugs. */
export function printStatus({ sent, delivery, state: _, ...details }: TransferStatus): string {
  return printShared({
    details,
    delivery,
    sent: { ...sent, source: sent.source.slug, destination: sent.destination.slug },
  });
}

/** Parses what `printStatus` has printed; undefined for anything else, and for chains that the network does not have. */
export function parseStatus(text: string, network: Network): TransferStatus | undefined {
  try {
    const { sent, delivery, details } = parseShared(text) as PrintedStatus;
    const source = network.chains.get(sent.source);
    const destination = network.chains.get(sent.destination);
    if (source === undefined || destination === undefined) return undefined;
    return buildTransferStatus({ ...sent, source, destination }, delivery, details);
  } catch {
    return undefined;
  }
}
