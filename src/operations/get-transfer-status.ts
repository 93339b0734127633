import { create } from "@bufbuild/protobuf";
import {
  type GetTransferStatusRequest,
  type GetTransferStatusResponse,
  GetTransferStatusResponseSchema,
  GetTransferStatusResponse_State as State,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Chains } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import { decimalsOf } from "../hop/tokens.js";
import type { TokenPrices } from "../prices/token-prices.js";
import { within } from "../remote/within.js";
import type { TransferStatus } from "../transfers/transfer.js";
import type { TransferQuery, TransferSource } from "../transfers/transfer-source.js";
import type { Operation } from "./operation.js";
import { parseNetwork, parseRpcUrls } from "./parameters.js";

/** How long a status that is known waits for a price, in milliseconds. */
const pricePatienceMs = 1_000;

export function createGetTransferStatus(deps: {
  readonly chains: Chains;
  readonly source: TransferSource;
  readonly prices: TokenPrices;
}): Operation<GetTransferStatusRequest, GetTransferStatusResponse> {
  return async (request, context) => {
    const query = parseQuery(request);
    const network = parseNetwork(request.network);
    const custom = parseRpcUrls(network, request.rpcUrl);
    context.note({ network: network.slug });

    const status = await deps.chains.use(network.slug, custom, (chains) =>
      deps.source.find(network, query, chains, context.signal),
    );
    if (status === undefined) {
      throw new ServiceError("TRANSFER_NOT_FOUND", `no Hop transfer with this id or hash on ${network.slug}`);
    }
    const { token, source, destination } = status.sent;
    context.note({ token, route: `${source.slug}>${destination.slug}`, state: status.state });
    // Without a price the answer is still the answer: its USD fields are 0.
    const usd = await within(deps.prices.usd(token), pricePatienceMs, 0);
    return toMessage(status, usd);
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
  if (/^0x[0-9a-f]{64}$/i.test(value)) return value.toLowerCase();
  throw new ServiceError("INVALID_PARAMETER", `${field} is not 32 bytes as 0x-prefixed hex`, { field });
}

function parseTransferId(value: string): string | undefined {
  // The nonce of CCTP is an unsigned 64-bit integer.
  if (/^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n) return value;
  return parseHash("transferId", value);
}

function toMessage(
  { sent, timestamp, delivery, state, otherTransferIds }: TransferStatus,
  usd: number,
): GetTransferStatusResponse {
  const { event, source, destination } = sent;
  const amountFormatted = formatted(event.amount, sent.token);
  const bonderFeeFormatted = formatted(event.bonderFee, sent.token);
  return create(GetTransferStatusResponseSchema, {
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
    deadline: event.deadline > maxInt64 ? maxInt64 : event.deadline,
    recipientAddress: event.recipient,
    bonderFee: event.bonderFee.toString(),
    bonderFeeFormatted,
    bonderFeeUsd: bonderFeeFormatted * usd,
    bonded: delivery !== undefined,
    bondTransactionHash: delivery?.transactionHash ?? "",
    bonderAddress: delivery?.bonder ?? "",
    token: sent.token,
    timestamp: BigInt(timestamp),
    state: State[state],
    otherTransferIds: [...otherTransferIds],
  });
}

/** A sender may write any 256-bit deadline; the contract's field has 63 bits for it. */
const maxInt64 = 2n ** 63n - 1n;

/** Whole tokens: the double nearest to amount / 10^decimals. */
function formatted(amount: bigint, token: string): number {
  return Number(`${amount}e-${decimalsOf(token)}`);
}
