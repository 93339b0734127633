import type { GetTransferStatusRequest, GetTransferStatusResponse } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { BlockAgeMonitor } from "../../chain/block-age/block-age-monitor.js";
import type { ChainClients, NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import type { Network } from "../../hop/networks.js";
import type { TokenPrices } from "../../prices/token-prices.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import { withTimeout } from "../../resilience/with-timeout.js";
import {
  areFinalDetails,
  type TransferDetails,
  type TransferDetailsFinder,
} from "../../transfers/details/transfer-details.js";
import type { LookupContext, LookupResult, TransferQuery } from "../../transfers/sources/transfer-source.js";
import { isImmutableStatus, type TransferStatus } from "../../transfers/status.js";
import { getStatusTtlMs, type StatusCache } from "../../transfers/status-cache.js";
import type { CachePolicy, CallContext, Operation } from "../operation.js";
import { parseIsFullView, parseNetwork, parseRpcUrls } from "../parameters.js";
import { toTransferDetailsMessage } from "./transfer-details-message.js";
import { parseTransactionHash, parseTransferId } from "./transfer-identifiers.js";
import { toTransferStatusMessage } from "./transfer-status-message.js";

/** How long a response waits for a price after the status is known. */
const PRICE_TIMEOUT_MS = 1_000;
/** How long callers may cache a status that cannot change. */
const SETTLED_MAX_AGE_SECONDS = 24 * 60 * 60;

export interface GetTransferStatusDeps {
  readonly chains: Pick<ChainClients, "forNetwork" | "withCustomEndpoints">;
  /** Judges the age of blocks. Default: every chain may stand still. */
  readonly blockAges?: Pick<BlockAgeMonitor, "stalledCount" | "findStalled"> | undefined;
  readonly statusCache: Pick<StatusCache, "find">;
  readonly details: TransferDetailsFinder;
  readonly prices: TokenPrices;
  /** Maximum duration of a call, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
}

/** What a response depends on beside the status. */
interface ResponseContext {
  readonly network: string;
  readonly isPrivate: boolean;
  readonly remainingMs: () => number;
}

export function createGetTransferStatus(
  options: GetTransferStatusDeps,
): Operation<GetTransferStatusRequest, GetTransferStatusResponse> {
  const { chains, blockAges, statusCache, details: detailsFinder, prices, maxTimeoutMs, now, monotonicNow } = options;
  const toMessage = createMessageMemo();
  const describe = createDescriptionMemo(blockAges);

  /** Returns the token's price at the time of the transfer or now; 0 without one, so that the USD fields are 0. */
  function getPriceUsd({ sent: { token }, priceUsd }: TransferStatus, remainingMs: () => number): MaybePromise<number> {
    if (priceUsd !== undefined) return priceUsd;
    const priceTable = prices.peekTable([token]);
    if (priceTable === undefined)
      return withTimeout(prices.getUsdPrice(token), Math.min(PRICE_TIMEOUT_MS, Math.max(0, remainingMs() / 2)), 0);
    try {
      return priceTable.getUsdPrice(token);
    } catch {
      return 0;
    }
  }

  /** A response without a price is never cached for long, since the price may become available. */
  function getCachePolicy(status: TransferStatus, details: TransferDetails | undefined, priceUsd: number): CachePolicy {
    const isSettled = isImmutableStatus(status) && priceUsd > 0 && (details === undefined || areFinalDetails(details));
    const maxAgeSeconds = isSettled ? SETTLED_MAX_AGE_SECONDS : getStatusTtlMs(status) / 1000;
    return { ageSeconds: (now() - status.observedAtMs) / 1000, maxAgeSeconds };
  }

  function respond(
    status: TransferStatus,
    details: TransferDetails | undefined,
    { network, isPrivate, remainingMs }: ResponseContext,
    context: CallContext,
  ): MaybePromise<GetTransferStatusResponse> {
    const { logFields, metadata } = describe(status, network);
    context.addLogFields(logFields);
    context.setResponseMetadata(metadata);
    const respondWithPrice = (priceUsd: number): GetTransferStatusResponse => {
      context.setCachePolicy(isPrivate ? "private" : getCachePolicy(status, details, priceUsd));
      const message = toMessage(status, priceUsd);
      if (details === undefined) return message;
      return Object.preventExtensions({ ...message, details: toTransferDetailsMessage(details) });
    };
    return mapMaybeAsync(getPriceUsd(status, remainingMs), respondWithPrice);
  }

  return (request, context) => {
    const query = parseQuery(request);
    const network = parseNetwork(request.network);
    const customUrls = parseRpcUrls(network, request.rpcUrl);
    const isFull = parseIsFullView(request.view);
    context.addLogFields({ network: network.slug });

    const deadlineAt = monotonicNow() + Math.min(context.timeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    const remainingMs = (): number => deadlineAt - monotonicNow();
    const toResponseOrNotFound = (status: LookupResult): MaybePromise<GetTransferStatusResponse> => {
      if (status !== undefined)
        return respond(
          status,
          details,
          { network: network.slug, isPrivate: customUrls.size > 0, remainingMs },
          context,
        );
      throw new ServiceError("TRANSFER_NOT_FOUND", `no Hop transfer with this id or hash on ${network.slug}`);
    };
    let details: TransferDetails | undefined;
    const find = (access: NetworkChainClients): MaybePromise<LookupResult> => {
      const lookupContext = new CallLookupContext(network, access, remainingMs, context);
      const lookup = statusCache.find(query, lookupContext);
      if (!isFull) return lookup;
      return mapMaybeAsync(lookup, (status) => {
        if (status === undefined) return undefined;
        return mapMaybeAsync(detailsFinder.find([status], lookupContext), ([outcome]) => {
          if (outcome !== undefined && "error" in outcome) throw outcome.error;
          details = outcome?.details;
          return status;
        });
      });
    };
    const lookup =
      customUrls.size > 0
        ? chains.withCustomEndpoints(network.slug, customUrls, async (access) => find(access), context)
        : find(chains.forNetwork(network.slug));
    return mapMaybeAsync(lookup, toResponseOrNotFound);
  };
}

/**
 * The lookup context of a call. A class, because creating the signal has a cost that cached statuses avoid, and a getter
 * in an object literal makes a hidden class for each call: these live, with all that the getter refers to, until the next
 * full garbage collection.
 */
class CallLookupContext implements LookupContext {
  readonly caller: string;

  constructor(
    readonly network: Network,
    readonly chains: NetworkChainClients,
    readonly remainingMs: () => number,
    private readonly callContext: CallContext,
  ) {
    this.caller = callContext.caller;
  }

  get signal(): AbortSignal {
    return this.callContext.signal;
  }
}

function parseQuery(request: GetTransferStatusRequest): TransferQuery {
  const transferHash = parseHash("transferHash", request.transferHash);
  const transactionHash = parseHash("transactionHash", request.transactionHash);
  if (transferHash !== undefined && transactionHash !== undefined && transferHash !== transactionHash) {
    const message = "transferHash and transactionHash are names of the same parameter and must be equal";
    throw new ServiceError("INVALID_PARAMETER", message, { field: "transactionHash" });
  }
  const transferId = request.transferId === "" ? undefined : parseTransferId("transferId", request.transferId);
  const hash = transferHash ?? transactionHash;
  if (transferId === undefined && hash === undefined) {
    throw new ServiceError("MISSING_PARAMETER", "transferId or transferHash is required", { field: "transferId" });
  }
  return { transferId, transactionHash: hash };
}

function parseHash(field: string, value: string): string | undefined {
  return value === "" ? undefined : parseTransactionHash(field, value);
}

/**
 * Memoizes the message of a cached status while the price is the same, so that its serialized form can be memoized too.
 * An entry for each status that is asked for once would cost more than building its message again.
 */
function createMessageMemo(): (status: TransferStatus, priceUsd: number) => GetTransferStatusResponse {
  const memo = new WeakMap<
    TransferStatus,
    { readonly priceUsd: number; readonly message: GetTransferStatusResponse }
  >();
  return (status, priceUsd) => {
    if (!Object.isFrozen(status)) return Object.preventExtensions(toTransferStatusMessage(status, priceUsd));
    const memoized = memo.get(status);
    if (memoized?.priceUsd === priceUsd) return memoized.message;
    const message = Object.freeze(toTransferStatusMessage(status, priceUsd));
    memo.set(status, { priceUsd, message });
    return message;
  };
}

/** Returns as of when a status holds: while a chain stands still, what it says is as old as its newest block. */
function getObservedAtMs(
  status: TransferStatus,
  network: string,
  blockAges: GetTransferStatusDeps["blockAges"],
): number {
  const { sent, source, observedAtMs } = status;
  const isAsOld = blockAges !== undefined && blockAges.stalledCount() > 0;
  if (!isAsOld || source === "explorer" || isImmutableStatus(status)) return observedAtMs;
  const blocks = [sent.source, sent.destination].flatMap(({ slug }) => blockAges.findStalled(network, slug) ?? []);
  return Math.min(observedAtMs, ...blocks.map(({ timestamp }) => timestamp * 1000));
}

/** Log fields and response metadata of a status; memoized while the status is cached. */
interface StatusDescription {
  readonly logFields: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
}

function createDescriptionMemo(
  blockAges: GetTransferStatusDeps["blockAges"],
): (status: TransferStatus, network: string) => StatusDescription {
  const memo = new WeakMap<TransferStatus, StatusDescription>();
  return (status, network) => {
    const memoized = Object.isFrozen(status) ? memo.get(status) : undefined;
    if (memoized !== undefined) return memoized;
    const { sent, state, source } = status;
    const observedAtMs = getObservedAtMs(status, network, blockAges);
    const description = {
      logFields: { token: sent.token, route: `${sent.source.slug}>${sent.destination.slug}`, state, source },
      metadata: { source, "observed-at": new Date(observedAtMs).toISOString() },
    };
    if (Object.isFrozen(status)) memo.set(status, description);
    return description;
  };
}
