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

/** A result of `/v1/quotes`: a quote or an error. */
export interface QuoteResult {
  readonly toChain: string;
  readonly amount: string;
  readonly quote?: QuoteResponse;
  readonly error?: { readonly message: string; readonly reason: string };
}

export interface BatchQuotesResponse {
  readonly results: readonly QuoteResult[];
}

export interface TransferStatusResponse {
  readonly transferId: string;
  readonly transactionHash: string;
  readonly sourceChainSlug: string;
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
  readonly state: "PENDING" | "BONDED" | "UNBONDABLE";
  readonly otherTransferIds: readonly string[];
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
