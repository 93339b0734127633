import type { ChainAccess } from "../chain/chains.js";
import { type Receipt, readBlockTime, readLogs, readReceipt } from "../chain/reads.js";
import { ServiceError } from "../errors.js";
import { type BridgeBook, createBridgeBook, type Sender } from "../hop/bridge-book.js";
import { decodeSent, type SentEvent, topicOf, topics } from "../hop/events.js";
import type { Chain, Network } from "../hop/networks.js";
import { findDelivery } from "./delivery.js";
import { type SentTransfer, stateOf, type TransferStatus } from "./transfer.js";
import type { TransferQuery, TransferSource } from "./transfer-source.js";

/** A transaction that has been found, with the chain that holds it. */
interface Found {
  readonly chain: Chain;
  readonly receipt: Receipt;
}

/** Knows of transfers what the chains' own receipts, logs and contracts say. */
export function createChainSource(): TransferSource {
  const books = new Map<Network, BridgeBook>();
  const bookOf = (network: Network): BridgeBook => {
    const book = books.get(network) ?? createBridgeBook(network);
    books.set(network, book);
    return book;
  };

  return {
    async find(network, query, chains, signal) {
      const book = bookOf(network);
      const found = await findTransaction(network, book, query, chains, signal);
      if (found === undefined) return undefined;
      const all = readSends(book, found);
      const chosen = all.find(({ id }) => query.transferId === undefined || id === query.transferId);
      if (chosen === undefined) return undefined;
      const sent = toTransfer(network, found, chosen);
      const [timestamp, delivery] = await Promise.all([
        readBlockTime(chains.client(sent.source.slug), found.receipt.blockHash, signal),
        findDelivery(sent, book, chains, signal),
      ]);
      const otherTransferIds = all.filter((other) => other !== chosen).map(({ id }) => id);
      return { sent, timestamp, delivery, state: stateOf(sent, delivery), otherTransferIds } satisfies TransferStatus;
    },
  };
}

async function findTransaction(
  network: Network,
  book: BridgeBook,
  { transferId, transactionHash }: TransferQuery,
  chains: ChainAccess,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const all = [...network.chains.values()];
  if (transactionHash !== undefined) {
    return firstFound(all, (chain) => findReceipt(chain, transactionHash, chains, signal));
  }
  if (transferId === undefined) return undefined;
  if (/^[0-9]+$/.test(transferId)) return findCctpNonce(all, book, transferId, chains, signal);
  return firstFound(all, async (chain) => {
    // From L1 the transaction's hash is the id.
    if (chain.isL1) return findReceipt(chain, transferId, chains, signal);
    const address = sendersOf(book, chain, "l2");
    if (address.length === 0) return undefined;
    const filter = { address, topics: [topics.transferSent, transferId] };
    const [log] = await readLogs(chains.client(chain.slug), filter, signal);
    return log && findReceipt(chain, log.transactionHash, chains, signal);
  });
}

/** Asks all chains at once and takes the first that knows. That none knows is sure only when all have answered. */
async function firstFound(
  chains: readonly Chain[],
  look: (chain: Chain) => Promise<Found | undefined>,
): Promise<Found | undefined> {
  const failures: unknown[] = [];
  return new Promise((resolve, reject) => {
    let open = chains.length;
    const settle = (): void => {
      open -= 1;
      if (open > 0) return;
      if (failures.length > 0) reject(failures[0]);
      else resolve(undefined);
    };
    for (const chain of chains) {
      look(chain).then(
        (found) => {
          if (found !== undefined) resolve(found);
          settle();
        },
        (error: unknown) => {
          failures.push(error);
          settle();
        },
      );
    }
  });
}

async function findReceipt(
  chain: Chain,
  hash: string,
  chains: ChainAccess,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const receipt = await readReceipt(chains.client(chain.slug), hash, signal);
  return receipt && { chain, receipt };
}

/** A nonce is unique per source chain only: two chains may have it, and then the id alone names no transfer. */
async function findCctpNonce(
  all: readonly Chain[],
  book: BridgeBook,
  nonce: string,
  chains: ChainAccess,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const filterTopics = [topics.cctpTransferSent, topicOf(BigInt(nonce))];
  const perChain = await Promise.all(
    all.map(async (chain) => {
      const address = sendersOf(book, chain, "cctp");
      if (address.length === 0) return [];
      const logs = await readLogs(chains.client(chain.slug), { address, topics: filterTopics }, signal);
      return logs.map((log) => ({ chain, log }));
    }),
  );
  const [only, ...more] = perChain.flat();
  if (more.length > 0) {
    const message = "several source chains have a CCTP transfer with this nonce: give the transaction's hash as well";
    throw new ServiceError("INVALID_PARAMETER", message, { field: "transferId" });
  }
  return only && findReceipt(only.chain, only.log.transactionHash, chains, signal);
}

function sendersOf(book: BridgeBook, chain: Chain, kind: Sender["kind"]): string[] {
  return [...book.senders(chain)].filter(([, sender]) => sender.kind === kind).map(([address]) => address);
}

/** One event by which a transaction sent a transfer. */
interface Send {
  readonly id: string;
  readonly sender: Sender;
  readonly event: SentEvent;
  readonly logIndex: bigint;
}

/** The transfers that a transaction sent, in log order: only events of Hop's own contracts count. */
function readSends(book: BridgeBook, { chain, receipt }: Found): readonly Send[] {
  const senders = book.senders(chain);
  return receipt.logs.flatMap((log) => {
    const sender = senders.get(log.address.toLowerCase());
    const event = sender && decodeSent(log);
    if (sender === undefined || event === undefined) return [];
    const id = event.transferId ?? receipt.transactionHash.toLowerCase();
    return [{ id, sender, event, logIndex: BigInt(log.logIndex) }];
  });
}

/** @throws ServiceError UNSUPPORTED_CHAIN for a transfer to a chain that is not in the address book. */
function toTransfer(network: Network, { chain, receipt }: Found, { id, sender, event, logIndex }: Send): SentTransfer {
  const destination = [...network.chains.values()].find(({ chainId }) => chainId === event.destinationChainId);
  if (destination === undefined) {
    const message = `this transfer goes to chain ${event.destinationChainId}, which is not known here`;
    throw new ServiceError("UNSUPPORTED_CHAIN", message);
  }
  return {
    kind: sender.kind,
    id,
    token: sender.token,
    source: chain,
    destination,
    transactionHash: receipt.transactionHash.toLowerCase(),
    logIndex,
    account: receipt.from.toLowerCase(),
    event,
  };
}
