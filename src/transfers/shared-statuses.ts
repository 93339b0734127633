import type { Network } from "../hop/networks.js";
import { parseInteger, parseList, parseNumber, parseRecord, parseText } from "../shared-state/plain-values.js";
import type { TransferResolver } from "./resolver.js";
import { type TransferQuery, usesCustomEndpoints } from "./sources/transfer-source.js";
import { buildTransferStatus, isImmutableStatus, type TransferSourceName, type TransferStatus } from "./status.js";
import type { TransferDelivery } from "./transfer.js";

/** Texts that replicas keep for each other for some time. Neither call throws. */
export interface SharedTexts {
  /** Resolves within a few milliseconds. */
  get(key: string): Promise<string | undefined>;
  set(key: string, text: string): void;
}

const HASH_PATTERN = /^0x[0-9a-f]{64}$/;
const ADDRESS_PATTERN = /^0x[0-9a-f]{40}$/;
const TRANSFER_KINDS = ["l1", "l2", "cctp"] as const;
const SOURCES: readonly TransferSourceName[] = ["chain", "index", "explorer"];

/**
 * Decorates a resolver: a final status that another replica has read is not read again. Says nothing of lookups that use a
 * caller's own endpoint, neither to others nor by them.
 * @param onRefused called for a text that is not a final status of the transfer that was asked for
 */
export function createSharedResolver(
  resolver: TransferResolver,
  texts: SharedTexts,
  onRefused: () => void,
): TransferResolver {
  return {
    async resolve(query, context) {
      const { network, chains } = context;
      if (usesCustomEndpoints(chains, network.chains.keys())) return resolver.resolve(query, context);
      const key = `${network.slug}:${query.transactionHash ?? ""}:${query.transferId ?? ""}`;
      const text = await texts.get(key);
      if (text !== undefined) {
        try {
          return parseFinalStatus(text, network, query);
        } catch {
          onRefused();
        }
      }
      const status = await resolver.resolve(query, context);
      if (status !== undefined && isImmutableStatus(status)) texts.set(key, printStatus(status));
      return status;
    },
  };
}

/** Prints a status as JSON. */
export function printStatus({ sent, delivery, state: _, ...details }: TransferStatus): string {
  const { source, destination, event, ...transfer } = sent;
  return JSON.stringify({
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
  });
}

/**
 * @param query that the status has to answer
 * @throws TypeError for anything but a final status that printStatus has printed
 */
export function parseFinalStatus(text: string, network: Network, query: TransferQuery): TransferStatus {
  const { sent, delivery, event, otherTransferIds, source, observedAtMs, isFinal, priceUsd } = parseRecord(
    parseJson(text),
  );
  const transfer = parseRecord(sent);
  const fields = parseRecord(event);
  const status = buildTransferStatus(
    {
      kind: parseChoice(transfer.kind, TRANSFER_KINDS),
      id: parseText(transfer.id),
      token: parseKey(transfer.token, network.contracts),
      source: parseChain(transfer.source, network),
      destination: parseChain(transfer.destination, network),
      transactionHash: parsePattern(transfer.transactionHash, HASH_PATTERN),
      blockNumber: parseCount(transfer.blockNumber),
      timestamp: parseCount(transfer.timestamp),
      logIndex: parseCount(transfer.logIndex),
      account: parsePattern(transfer.account, ADDRESS_PATTERN),
      event: {
        transferId: parseOptional(fields.transferId, parseText),
        destinationChainId: parseCount(fields.destinationChainId),
        recipient: parsePattern(fields.recipient, ADDRESS_PATTERN),
        amount: parseInteger(fields.amount),
        amountOutMin: parseInteger(fields.amountOutMin),
        deadline: parseInteger(fields.deadline),
        bonderFee: parseInteger(fields.bonderFee),
        relayer: parseOptional(fields.relayer, (value) => parsePattern(value, ADDRESS_PATTERN)),
      },
    },
    parseDelivery(delivery),
    {
      otherTransferIds: parseList(otherTransferIds).map(parseText),
      source: parseChoice(source, SOURCES),
      observedAtMs: parseCount(observedAtMs),
      isFinal: isFinal === true,
      priceUsd: parseOptional(priceUsd, parseNumber),
    },
  );
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

function parseDelivery(json: unknown): TransferDelivery {
  const { transactionHash, blockNumber, bonder, ...delivery } = parseRecord(json);
  return {
    transactionHash: parsePattern(transactionHash, HASH_PATTERN),
    blockNumber: parseOptional(blockNumber, parseCount),
    ...("timestamp" in delivery && { timestamp: parseCount(delivery.timestamp) }),
    bonder: parseOptional(bonder, (value) => parsePattern(value, ADDRESS_PATTERN)),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TypeError("not JSON");
  }
}

function parseOptional<T>(value: unknown, parse: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : parse(value);
}

function parsePattern(value: unknown, pattern: RegExp): string {
  const text = parseText(value);
  if (pattern.test(text)) return text;
  throw new TypeError("not the expected text");
}

function parseCount(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new TypeError("not a whole number");
}

function parseChoice<const T>(value: unknown, choices: readonly T[]): T {
  const choice = choices.find((other) => other === value);
  if (choice !== undefined) return choice;
  throw new TypeError("not one of the expected values");
}

function parseKey(value: unknown, map: ReadonlyMap<string, unknown>): string {
  const key = parseText(value);
  if (map.has(key)) return key;
  throw new TypeError("not a known name");
}

function parseChain(value: unknown, { chains }: Network) {
  const chain = chains.get(parseText(value));
  if (chain !== undefined) return chain;
  throw new TypeError("not a chain of the network");
}
