import {
  type GetTransferStatusRequest,
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State as State,
  TransferDetails_Substate as Substate,
  type TransferDetails as TransferDetailsMessage,
  TransferDetailsSchema,
  type TransferLeg as TransferLegMessage,
  TransferLegSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients, NetworkChainClients } from "../../chain/chains.js";
import type { BlockAgeMonitor } from "../../chain/heads/block-age-monitor.js";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import type { Network } from "../../hop/networks.js";
import { getTokenDecimals } from "../../hop/tokens.js";
import type { PriceTable, TokenPrices } from "../../prices/token-prices.js";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { DetailsFinder } from "../../transfers/details/details-finder.js";
import { areFinalDetails, type TransferDetails, type TransferLeg } from "../../transfers/details/transfer-details.js";
import type { LookupContext, LookupResult } from "../../transfers/sources/transfer-source.js";
import { isImmutableStatus, type TransferStatus } from "../../transfers/status.js";
import { getStatusTtlMs, type StatusCache } from "../../transfers/status-cache.js";
import type { CachePolicy, CallContext, Operation } from "../operation.js";
import { parseIsFullView, parseNetwork, parseRpcUrls, parseTransferIdentifiers } from "../parameters.js";

/** How long callers may cache a status that cannot change. */
const SETTLED_MAX_AGE_SECONDS = 24 * 60 * 60;

export interface GetTransferStatusDeps {
  readonly chains: Pick<ChainClients, "forNetwork" | "withCustomEndpoints">;
  /** Judges the age of blocks. Default: every chain may be stalled. */
  readonly blockAges?: Pick<BlockAgeMonitor, "stalledCount" | "findStalled"> | undefined;
  readonly statusCache: Pick<StatusCache, "find">;
  readonly details: Pick<DetailsFinder, "find">;
  /** undefined: the source is switched off. */
  readonly attestations: Pick<AttestationClient, "findOutage"> | undefined;
  readonly prices: TokenPrices;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createGetTransferStatus(
  deps: GetTransferStatusDeps,
): Operation<GetTransferStatusRequest, GetTransferStatusResponse> {
  const { chains, statusCache, details: detailsFinder, attestations } = deps;
  const responder = new StatusResponder(deps);

  return (request, context) => {
    const query = parseTransferIdentifiers(request);
    const network = parseNetwork(request.network);
    const customUrls = parseRpcUrls(network, request.rpcUrl);
    const isFull = parseIsFullView(request.view);
    context.addLogFields({ network: network.slug });

    const toResponseOrNotFound = (status: LookupResult): MaybePromise<GetTransferStatusResponse> => {
      if (status !== undefined)
        return responder.respond(status, details, { network: network.slug, isPrivate: customUrls.size > 0 }, context);
      throw new ServiceError("TRANSFER_NOT_FOUND", `no Hop transfer with this id or hash on ${network.slug}`);
    };
    let details: TransferDetails | undefined;
    const find = (customChains?: NetworkChainClients): MaybePromise<LookupResult> => {
      const lookupContext = new CallLookupContext(network, { chains, customChains }, context);
      const lookup = statusCache.find(query, lookupContext);
      if (!isFull) return lookup;
      return mapMaybeAsync(lookup, (status) => {
        if (status === undefined) return undefined;
        return mapMaybeAsync(detailsFinder.find([status], lookupContext), ([outcome]) => {
          if (outcome !== undefined && "error" in outcome) throw outcome.error;
          details = outcome?.details;
          const warned = warnOfMissingAttestations(details ? [details] : [], attestations, context);
          return mapMaybeAsync(warned, () => status);
        });
      });
    };
    const lookup =
      customUrls.size > 0
        ? chains.withCustomEndpoints(network.slug, customUrls, async (access) => find(access), context)
        : find();
    return mapMaybeAsync(lookup, toResponseOrNotFound);
  };
}

/** Makes responses of statuses. What it makes of a cached status is kept with that. */
class StatusResponder {
  readonly #deps: Pick<GetTransferStatusDeps, "blockAges" | "prices" | "now">;
  readonly #messages = new WeakMap<
    TransferStatus,
    { readonly priceUsd: number; readonly message: GetTransferStatusResponse }
  >();
  readonly #descriptions = new WeakMap<TransferStatus, ReturnType<typeof describeStatus>>();

  constructor(deps: Pick<GetTransferStatusDeps, "blockAges" | "prices" | "now">) {
    this.#deps = deps;
  }

  respond(
    status: TransferStatus,
    details: TransferDetails | undefined,
    { network, isPrivate }: { readonly network: string; readonly isPrivate: boolean },
    context: CallContext,
  ): MaybePromise<GetTransferStatusResponse> {
    const { logFields, metadata } = this.#describe(status, network);
    context.addLogFields(logFields);
    context.setResponseMetadata(metadata);
    const respondWithPrice = (priceUsd: number): GetTransferStatusResponse => {
      context.setCachePolicy(isPrivate ? "private" : this.#getCachePolicy(status, details, priceUsd));
      const message = this.#toMessage(status, priceUsd);
      if (details === undefined) return message;
      return Object.preventExtensions({ ...message, details: toTransferDetailsMessage(details) });
    };
    const getTimeoutMs = (): number => Math.min(PRICE_TIMEOUT_MS, Math.max(0, context.remainingMs() / 2));
    return mapMaybeAsync(getPriceUsd(status, this.#deps.prices, getTimeoutMs), respondWithPrice);
  }

  /** A response without a price is never cached for long, since the price may become available. */
  #getCachePolicy(status: TransferStatus, details: TransferDetails | undefined, priceUsd: number): CachePolicy {
    const isSettled = isImmutableStatus(status) && priceUsd > 0 && (details === undefined || areFinalDetails(details));
    return toStatusCachePolicy(status, isSettled, this.#deps.now());
  }

  /**
   * Returns the message of a status. That of a cached one is the same object while the price is the same, so that its
   * serialized form can be memoized too; an entry for each status that is asked for once would cost more than its message.
   */
  #toMessage(status: TransferStatus, priceUsd: number): GetTransferStatusResponse {
    if (!Object.isFrozen(status)) return Object.preventExtensions(toTransferStatusMessage(status, priceUsd));
    const memoized = this.#messages.get(status);
    if (memoized?.priceUsd === priceUsd) return memoized.message;
    const message = Object.freeze(toTransferStatusMessage(status, priceUsd));
    this.#messages.set(status, { priceUsd, message });
    return message;
  }

  #describe(status: TransferStatus, network: string): ReturnType<typeof describeStatus> {
    const memoized = Object.isFrozen(status) ? this.#descriptions.get(status) : undefined;
    if (memoized !== undefined) return memoized;
    const description = describeStatus(status, getObservedAtMs(status, network, this.#deps.blockAges));
    if (Object.isFrozen(status)) this.#descriptions.set(status, description);
    return description;
  }
}

/** Lets callers cache what a status says. @param isSettled whether it cannot change */
export function toStatusCachePolicy(status: TransferStatus, isSettled: boolean, nowMs: number): CachePolicy {
  const maxAgeSeconds = isSettled ? SETTLED_MAX_AGE_SECONDS : getStatusTtlMs(status) / 1000;
  return { ageSeconds: (nowMs - status.observedAtMs) / 1000, maxAgeSeconds };
}

/** The chains that a call may read. */
interface ChainAccess {
  readonly chains: Pick<ChainClients, "forNetwork">;
  /** Those of the network, with endpoints of the caller; undefined: it has named none. */
  readonly customChains: NetworkChainClients | undefined;
}

/**
 * The lookup context of a call. A class, because its getters have costs that cached and indexed statuses avoid, and a getter
 * in an object literal makes a hidden class for each call: these live, with all that the getter refers to, until the next
 * full garbage collection.
 */
class CallLookupContext implements LookupContext {
  readonly isPrivate: boolean;
  readonly #access: ChainAccess;
  readonly #callContext: CallContext;

  constructor(
    readonly network: Network,
    access: ChainAccess,
    callContext: CallContext,
  ) {
    this.isPrivate = access.customChains !== undefined;
    this.#access = access;
    this.#callContext = callContext;
  }

  get chains(): NetworkChainClients {
    return this.#access.customChains ?? this.#access.chains.forNetwork(this.network.slug);
  }

  remainingMs(): number {
    return this.#callContext.remainingMs();
  }

  get caller(): string {
    return this.#callContext.caller;
  }

  get signal(): AbortSignal {
    return this.#callContext.signal;
  }
}

/** Returns the log fields and the response metadata of a status. */
function describeStatus({ sent, state, source }: TransferStatus, observedAtMs: number) {
  return {
    logFields: { token: sent.token, route: `${sent.source.slug}>${sent.destination.slug}`, state, source },
    metadata: { source, "observed-at": new Date(observedAtMs).toISOString() },
  };
}

/** Returns as of when a status holds: while a chain is stalled, what it says is as old as its newest block. */
function getObservedAtMs(
  status: TransferStatus,
  network: string,
  blockAges: GetTransferStatusDeps["blockAges"],
): number {
  const { sent, source, observedAtMs } = status;
  if (source === "explorer" || isImmutableStatus(status) || blockAges === undefined) return observedAtMs;
  if (blockAges.stalledCount() === 0) return observedAtMs;
  const blocks = [sent.source, sent.destination].flatMap(({ slug }) => blockAges.findStalled(network, slug) ?? []);
  return Math.min(observedAtMs, ...blocks.map(({ timestamp }) => timestamp * 1000));
}

/** Longest wait for the attestation source, in milliseconds: no status depends on it. */
const ATTESTATION_TIMEOUT_MS = 1_000;
const SILENT = "does not respond";

/**
 * Warns of transfers that wait for an attestation while it cannot be had: their statuses come from the chains alone, which
 * do not tell whether the burn is attested.
 * @param attestations undefined: the source is switched off
 */
export function warnOfMissingAttestations(
  details: readonly Pick<TransferDetails, "substate">[],
  attestations: Pick<AttestationClient, "findOutage"> | undefined,
  context: Pick<CallContext, "addWarning" | "remainingMs">,
): MaybePromise<void> {
  if (!details.some(({ substate }) => substate === "WAITING_FOR_ATTESTATION")) return undefined;
  const warn = (outage: string | undefined): void => {
    if (outage === undefined) return;
    context.addWarning(`it is not known what is attested: the CCTP attestation source ${outage}`);
  };
  if (attestations === undefined) return warn("is switched off (ATTESTATION_API_URL)");
  const timeoutMs = Math.min(ATTESTATION_TIMEOUT_MS, Math.max(0, context.remainingMs() / 2));
  return withTimeoutOrFallback<string | undefined>(attestations.findOutage(), timeoutMs, SILENT).then(warn);
}

/** Longest wait of a message for a price after the status is known, in milliseconds. */
export const PRICE_TIMEOUT_MS = 1_000;
/** A sender may choose any 256-bit deadline; the field of the response is an int64. */
const MAX_INT64 = 2n ** 63n - 1n;

/**
 * Returns the token's price at the time of the transfer or now; 0 without one, so that the USD fields are 0.
 * @param getTimeoutMs returns how long to wait for it at most
 */
export function getPriceUsd(
  { sent: { token }, priceUsd }: TransferStatus,
  prices: TokenPrices,
  getTimeoutMs: () => number,
): MaybePromise<number> {
  if (priceUsd !== undefined) return priceUsd;
  const table = prices.peekTable([token]);
  return table === undefined
    ? withTimeoutOrFallback(prices.getUsdPrice(token), getTimeoutMs(), 0)
    : getUsdPriceOrZero(table, token);
}

/** Returns the price of a token; 0 without one. */
export function getUsdPriceOrZero(table: PriceTable, token: string): number {
  try {
    return table.getUsdPrice(token);
  } catch {
    return 0;
  }
}

/** Returns a status as its message. @param priceUsd price of the token in US dollars; 0: unknown */
export function toTransferStatusMessage(
  { sent, delivery, state, otherTransferIds }: TransferStatus,
  priceUsd: number,
): GetTransferStatusResponse {
  const { event, source, destination } = sent;
  const amountFormatted = toWholeTokens(event.amount, sent.token);
  const bonderFeeFormatted = toWholeTokens(event.bonderFee, sent.token);
  // Not by `create`, nor by copying what it creates: both take longer than printing the message.
  return {
    $typeName: "hop.bridge.v1.GetTransferStatusResponse",
    transferId: sent.id,
    transactionHash: sent.transactionHash,
    sourceChainId: source.chainId,
    sourceChainSlug: source.slug,
    destinationChainId: destination.chainId,
    destinationChainSlug: destination.slug,
    accountAddress: sent.account,
    amount: event.amount.toString(),
    amountFormatted,
    amountUsd: amountFormatted * priceUsd,
    amountOutMin: event.amountOutMin.toString(),
    deadline: event.deadline > MAX_INT64 ? MAX_INT64 : event.deadline,
    recipientAddress: event.recipient,
    bonderFee: event.bonderFee.toString(),
    bonderFeeFormatted,
    bonderFeeUsd: bonderFeeFormatted * priceUsd,
    bonded: delivery !== undefined,
    bondTransactionHash: delivery?.transactionHash ?? "",
    bonderAddress: delivery?.bonder ?? "",
    token: sent.token,
    timestamp: BigInt(sent.timestamp),
    state: State[state],
    otherTransferIds: Object.freeze([...otherTransferIds]) as string[],
  };
}

/** Returns the details of a transfer as their message: what `create` would return, which takes longer. */
export function toTransferDetailsMessage(details: TransferDetails): TransferDetailsMessage {
  const { substate, payout, source, destination, estimatedDeliveryAt } = details;
  const message: TransferDetailsMessage = {
    $typeName: TransferDetailsSchema.typeName,
    substate: Substate[substate],
    receivedAmount: payout?.amount.toString() ?? "",
    receivedToken: payout?.token ?? "",
    source: toLegMessage(source),
  };
  if (estimatedDeliveryAt !== undefined) message.estimatedDeliveryAt = BigInt(estimatedDeliveryAt);
  if (destination !== undefined) message.destination = toLegMessage(destination);
  return message;
}

function toLegMessage({ blockNumber, timestamp, isFinal }: TransferLeg): TransferLegMessage {
  return {
    $typeName: TransferLegSchema.typeName,
    blockNumber: BigInt(blockNumber),
    timestamp: BigInt(timestamp),
    isFinal,
  };
}

/** Converts to whole tokens: the double nearest to amount / 10^decimals. */
function toWholeTokens(amount: bigint, token: string): number {
  return Number(`${amount}e-${getTokenDecimals(token)}`);
}
