import { create } from "@bufbuild/protobuf";
import {
  type GetTransferStatusRequest,
  type GetTransferStatusResponse,
  GetTransferStatusResponseSchema,
  GetTransferStatusResponse_State as State,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Chains, NetworkChains } from "../chain/chains.js";
import { isBytes32 } from "../chain/hex.js";
import { ServiceError } from "../errors.js";
import { getTokenDecimals } from "../hop/tokens.js";
import type { TokenPrices } from "../prices/token-prices.js";
import { withTimeout } from "../resilience/with-timeout.js";
import type { LookupResult, TransferQuery } from "../transfers/sources/transfer-source.js";
import { isImmutableStatus, type TransferStatus } from "../transfers/status.js";
import { getStatusTtlMs, type StatusCache } from "../transfers/status-cache.js";
import type { CachePolicy, CallContext, Operation } from "./operation.js";
import { parseNetwork, parseRpcUrls } from "./parameters.js";

/** How long a status that is known waits for a price, in milliseconds. */
const PRICE_TIMEOUT_MS = 1_000;
/** How long callers may keep what will not change, in seconds. */
const SETTLED_MAX_AGE_SECONDS = 24 * 60 * 60;

export interface GetTransferStatusDeps {
  readonly chains: Pick<Chains, "forNetwork" | "withCustomEndpoints">;
  readonly statusCache: StatusCache;
  readonly prices: TokenPrices;
  /** The longest time that any answer may take, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
}

export function createGetTransferStatus(
  options: GetTransferStatusDeps,
): Operation<GetTransferStatusRequest, GetTransferStatusResponse> {
  const { chains, statusCache, prices, maxTimeoutMs, now, monotonicNow } = options;
  const toMessage = createMessageMemo();
  const describe = createDescriptionMemo();

  /** The price of a token now; without one the answer is still the answer: its USD fields are 0. */
  function priceOf({ sent: { token }, priceUsd }: TransferStatus, leftMs: () => number): number | Promise<number> {
    if (priceUsd !== undefined) return priceUsd;
    const book = prices.peekTable([token]);
    if (book === undefined)
      return withTimeout(prices.getUsdPrice(token), Math.min(PRICE_TIMEOUT_MS, Math.max(0, leftMs() / 2)), 0);
    try {
      return book.getUsdPrice(token);
    } catch {
      return 0;
    }
  }

  /** How an answer may be kept: one without a price is not what it should be for long. */
  function cachePolicy(found: TransferStatus, usd: number): CachePolicy {
    const isForLong = isImmutableStatus(found) && usd > 0;
    const maxAgeSeconds = isForLong ? SETTLED_MAX_AGE_SECONDS : getStatusTtlMs(found) / 1000;
    return { ageSeconds: (now() - found.observedAtMs) / 1000, maxAgeSeconds };
  }

  function answer(
    found: TransferStatus,
    { isPrivate, leftMs }: { readonly isPrivate: boolean; readonly leftMs: () => number },
    context: CallContext,
  ): GetTransferStatusResponse | Promise<GetTransferStatusResponse> {
    const { logFields, metadata } = describe(found);
    context.addLogFields(logFields);
    context.setResponseMetadata(metadata);
    const valued = (usd: number): GetTransferStatusResponse => {
      context.setCachePolicy(isPrivate ? "private" : cachePolicy(found, usd));
      return toMessage(found, usd);
    };
    const usd = priceOf(found, leftMs);
    return typeof usd === "number" ? valued(usd) : usd.then(valued);
  }

  return (request, context) => {
    const query = parseQuery(request);
    const network = parseNetwork(request.network);
    const custom = parseRpcUrls(network, request.rpcUrl);
    context.addLogFields({ network: network.slug });

    const dueAt = monotonicNow() + Math.min(context.timeoutMs ?? maxTimeoutMs, maxTimeoutMs);
    const remainingMs = (): number => dueAt - monotonicNow();
    const conclude = (found: LookupResult): GetTransferStatusResponse | Promise<GetTransferStatusResponse> => {
      if (found !== undefined) return answer(found, { isPrivate: custom.size > 0, leftMs: remainingMs }, context);
      throw new ServiceError("TRANSFER_NOT_FOUND", `no Hop transfer with this id or hash on ${network.slug}`);
    };
    const find = (access: NetworkChains): LookupResult | Promise<LookupResult> =>
      statusCache.find(query, {
        network,
        chains: access,
        remainingMs,
        caller: context.caller,
        // Not read by who answers at once: it costs something to make.
        get signal() {
          return context.signal;
        },
      });
    if (custom.size > 0)
      return chains.withCustomEndpoints(network.slug, custom, async (access) => find(access), context).then(conclude);
    const found = find(chains.forNetwork(network.slug));
    return found instanceof Promise ? found.then(conclude) : conclude(found);
  };
}

function parseQuery(request: GetTransferStatusRequest): TransferQuery {
  const transferHash = parseHash("transferHash", request.transferHash);
  const transactionHash = parseHash("transactionHash", request.transactionHash);
  if (transferHash !== undefined && transactionHash !== undefined && transferHash !== transactionHash) {
    const message = "transferHash and transactionHash are two names of one parameter and differ here";
    throw new ServiceError("INVALID_PARAMETER", message, { field: "transactionHash" });
  }
  const transferId = parseTransferId(request.transferId);
  const hash = transferHash ?? transactionHash;
  if (transferId === undefined && hash === undefined) {
    throw new ServiceError("MISSING_PARAMETER", "transferId or transferHash is required", { field: "transferId" });
  }
  return { transferId, transactionHash: hash };
}

function parseHash(field: string, value: string): string | undefined {
  if (value === "") return undefined;
  if (isBytes32(value)) return value.toLowerCase();
  throw new ServiceError("INVALID_PARAMETER", `${field} is not 32 bytes as 0x-prefixed hex`, { field });
}

function parseTransferId(value: string): string | undefined {
  // The nonce of CCTP is an unsigned 64-bit integer.
  if (/^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n) return value;
  return parseHash("transferId", value);
}

/** Makes one message of a status as long as the price stands, so that what is made of it is made once too. */
function createMessageMemo(): (status: TransferStatus, usd: number) => GetTransferStatusResponse {
  const made = new WeakMap<TransferStatus, { readonly usd: number; readonly message: GetTransferStatusResponse }>();
  return (status, usd) => {
    const known = made.get(status);
    if (known?.usd === usd) return known.message;
    const message = toResponseMessage(status, usd);
    made.set(status, { usd, message });
    return message;
  };
}

/** What is said of a status beside its message, made once. */
interface StatusDescription {
  /** For the log. */
  readonly logFields: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
}

function createDescriptionMemo(): (status: TransferStatus) => StatusDescription {
  const made = new WeakMap<TransferStatus, StatusDescription>();
  return (status) => {
    const known = made.get(status);
    if (known !== undefined) return known;
    const { sent, state, source, observedAtMs } = status;
    const description = {
      logFields: { token: sent.token, route: `${sent.source.slug}>${sent.destination.slug}`, state, source },
      metadata: { source, "observed-at": new Date(observedAtMs).toISOString() },
    };
    made.set(status, description);
    return description;
  };
}

function toResponseMessage(
  { sent, delivery, state, otherTransferIds }: TransferStatus,
  usd: number,
): GetTransferStatusResponse {
  const { event, source, destination } = sent;
  const amountFormatted = toWholeTokens(event.amount, sent.token);
  const bonderFeeFormatted = toWholeTokens(event.bonderFee, sent.token);
  return Object.freeze(
    create(GetTransferStatusResponseSchema, {
      transferId: sent.id,
      transactionHash: sent.transactionHash,
      sourceChainId: source.chainId,
      sourceChainSlug: source.slug,
      destinationChainId: destination.chainId,
      destinationChainSlug: destination.slug,
      accountAddress: sent.account,
      amount: event.amount.toString(),
      amountFormatted,
      amountUsd: amountFormatted * usd,
      amountOutMin: event.amountOutMin.toString(),
      deadline: event.deadline > MAX_INT64 ? MAX_INT64 : event.deadline,
      recipientAddress: event.recipient,
      bonderFee: event.bonderFee.toString(),
      bonderFeeFormatted,
      bonderFeeUsd: bonderFeeFormatted * usd,
      bonded: delivery !== undefined,
      bondTransactionHash: delivery?.transactionHash ?? "",
      bonderAddress: delivery?.bonder ?? "",
      token: sent.token,
      timestamp: BigInt(sent.timestamp),
      state: State[state],
      otherTransferIds: Object.freeze([...otherTransferIds]) as string[],
    }),
  );
}

/** A sender may write any 256-bit deadline; the contract's field has 63 bits for it. */
const MAX_INT64 = 2n ** 63n - 1n;

/** Whole tokens: the double nearest to amount / 10^decimals. */
function toWholeTokens(amount: bigint, token: string): number {
  return Number(`${amount}e-${getTokenDecimals(token)}`);
}
