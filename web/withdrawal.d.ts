// Types of the module of `hop-gateway/client` that the build compiles beside the page's scripts.

export interface WithdrawalCall {
  readonly chainId: number;
  readonly to: string;
  readonly data: string;
}

/**
 * Verifies a response of `/v1/withdrawal` and encodes its transaction.
 * @throws Error that names what does not fit
 */
export function encodeWithdrawal(withdrawal: object): WithdrawalCall;
