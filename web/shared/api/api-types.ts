// The response fields that the page reads. /docs and /openapi.json describe every field.

export interface QuoteResponse {
  readonly amountIn: string;
  readonly amountOutMin: string;
  readonly destinationAmountOutMin: string;
  readonly bonderFee: string;
  readonly estimatedReceived: string;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

/** A quote with `view=FULL`. */
export interface DetailedQuoteResponse extends QuoteResponse {
  readonly details: QuoteDetails;
}

export interface QuoteDetails {
  /** Output of the swaps before the fee. */
  readonly amountOut: string;
  /** What `availableLiquidity` is compared with, in hTokens. */
  readonly requiredLiquidity: string;
  /** Percent; absent if the pools have no rate to compare with. */
  readonly priceImpact?: number;
  readonly limits: QuoteLimits;
  /** Absent without measured transfers. */
  readonly deliveryTime?: DeliveryTime;
  /** 0 where no price was needed. */
  readonly prices: { readonly tokenUsd: number };
}

export interface QuoteLimits {
  /** Empty if there is none. */
  readonly minAmount: string;
  /** Empty if there is no limit, or if it is not known. */
  readonly availableLiquidity: string;
  readonly isLiquidityAvailable: boolean;
  readonly liquidityBasis: "BONDER_CREDIT" | "CCTP_BURN_LIMIT" | "UNLIMITED" | "UNKNOWN";
}

export interface DeliveryTime {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
  readonly samples: number;
}

/** A result of `/v1/quotes`: a quote or an error. */
export interface QuoteResult<Quote = QuoteResponse> {
  readonly toChain: string;
  readonly amount: string;
  readonly quote?: Quote;
  readonly error?: { readonly message: string; readonly reason: string };
}

export interface BatchQuotesResponse<Quote = QuoteResponse> {
  readonly results: readonly QuoteResult<Quote>[];
}

export interface TransferStatusResponse {
  readonly transferId: string;
  readonly transactionHash: string;
  readonly sourceChainId: number;
  readonly sourceChainSlug: string;
  readonly destinationChainId: number;
  readonly destinationChainSlug: string;
  readonly accountAddress: string;
  readonly amount: string;
  readonly amountUsd: number;
  readonly amountOutMin: string;
  readonly deadline: number;
  readonly recipientAddress: string;
  readonly bonderFee: string;
  readonly bonderFeeUsd: number;
  readonly bondTransactionHash: string;
  readonly bonderAddress: string;
  readonly token: string;
  readonly timestamp: number;
  readonly state: TransferState;
  readonly otherTransferIds: readonly string[];
  /** Only with `view=FULL`. */
  readonly details?: TransferDetails;
}

export type TransferState = "PENDING" | "BONDED" | "UNBONDABLE";

export interface TransferDetails {
  readonly substate: TransferSubstate;
  /** Empty while pending, or if it is not known. */
  readonly receivedAmount: string;
  readonly receivedToken: string;
  readonly source: TransferLeg;
  readonly destination?: TransferLeg;
  /** Unix seconds; absent if it is not known. */
  readonly estimatedDeliveryAt?: number;
}

export type TransferSubstate =
  | "WAITING_FOR_BONDER"
  | "WAITING_FOR_ATTESTATION"
  | "WAITING_FOR_MESSAGE"
  | "WAITING_FOR_SETTLEMENT"
  | "WITHDRAWABLE"
  | "RECEIVED"
  | "RECEIVED_HTOKEN";

export interface TransferLeg {
  /** 0 if it is not known. */
  readonly blockNumber: number;
  readonly timestamp: number;
  readonly isFinal: boolean;
}

/** What is left to do for a transfer. It has a proof or a message once there is one. */
export interface WithdrawalResponse {
  readonly transferId: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
  readonly state: WithdrawalState;
  /** Unix seconds; absent if no time is known. */
  readonly availableAt?: number;
  readonly merkleProof?: object;
  readonly cctp?: { readonly attestation?: string };
}

export type WithdrawalState =
  | "RECEIVED"
  | "WAITING_FOR_COMMIT"
  | "WAITING_FOR_ROOT"
  | "WITHDRAWABLE"
  | "WAITING_FOR_ATTESTATION"
  | "REDEEMABLE"
  | "BLOCKED"
  | "AUTOMATIC";

/** Event of a watch: nobody knows the transfer. */
export interface UnknownTransfer {
  readonly transferId: string;
  readonly transferHash: string;
  /** Whether the service has stopped looking for it. */
  readonly isFinal: boolean;
}

/** Event of a watch that failed. */
export interface FailureEvent {
  readonly message: string;
}

/** A page of `/v1/transfers`. */
export interface TransferPage {
  readonly transfers: readonly TransferStatusResponse[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  /** Between which times the chains that the filters can touch are indexed, in Unix seconds. */
  readonly coveredFrom: number;
  readonly coveredUntil: number;
}

interface ChainHead {
  readonly number: number;
  /** Age by the timestamp of the block. */
  readonly ageSeconds: number;
}

export interface ChainReadiness {
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
  readonly state: string;
  readonly head?: ChainHead;
  /** The most that one CCTP message burns there; absent: not known, or no CCTP. */
  readonly cctpBurnLimitUsdc?: number;
  readonly endpoints: readonly { readonly endpoint: string; readonly state: string }[];
}

export interface SourceReadiness {
  readonly source: string;
  readonly state: string;
  readonly ageSeconds?: number;
}

export interface ReadinessResponse {
  readonly status: string;
  readonly reason?: string;
  readonly version?: string;
  readonly chains: readonly ChainReadiness[];
  readonly sources: readonly SourceReadiness[];
  /** Absent without an index. */
  readonly index?: readonly { readonly chain: string; readonly lagBlocks: number }[];
}
