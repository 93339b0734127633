import type { GetTransferStatusResponse } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { TokenPrices } from "../../prices/token-prices.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { DetailsFinder } from "../../transfers/details/details-finder.js";
import { areFinalDetails, type TransferDetails } from "../../transfers/details/transfer-details.js";
import type { LookupContext } from "../../transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../transfers/status.js";
import type { Presented } from "../../transfers/watch/followed-transfer.js";
import { computeFingerprint } from "../../transfers/watch/resume-token.js";
import {
  getPriceUsd,
  PRICE_TIMEOUT_MS,
  toTransferDetailsMessage,
  toTransferStatusMessage,
} from "./get-transfer-status.js";

/** Makes the messages of watched transfers: each once, for all who watch it. */
export type TransferPresenter = (
  status: TransferStatus,
  isFull: boolean,
  context: LookupContext,
) => MaybePromise<Presented<GetTransferStatusResponse>>;

export function createTransferPresenter(deps: {
  readonly details: Pick<DetailsFinder, "find">;
  readonly prices: TokenPrices;
}): TransferPresenter {
  async function findDetails(status: TransferStatus, context: LookupContext): Promise<TransferDetails | undefined> {
    const [outcome] = await deps.details.find([status], context);
    if (outcome !== undefined && "error" in outcome) throw outcome.error;
    return outcome?.details;
  }

  function present(status: TransferStatus, priceUsd: number, details: TransferDetails | undefined) {
    const message = toTransferStatusMessage(status, priceUsd);
    if (details !== undefined) message.details = toTransferDetailsMessage(details);
    return {
      message: Object.freeze(message),
      fingerprint: computeFingerprint(describeState(status, details), computeStage(status, details)),
      isFinal: details === undefined || areFinalDetails(details),
    };
  }

  return (status, isFull, context) =>
    mapMaybeAsync(
      getPriceUsd(status, deps.prices, () => PRICE_TIMEOUT_MS),
      (priceUsd) =>
        isFull
          ? findDetails(status, context).then((details) => present(status, priceUsd, details))
          : present(status, priceUsd, undefined),
    );
}

/** Returns how far a transfer has got, 0 to 7: from 4 on it is delivered. */
function computeStage({ delivery }: TransferStatus, details: TransferDetails | undefined): number {
  const finalLegs = Number(details?.source.isFinal === true) + Number(details?.destination?.isFinal === true);
  if (delivery !== undefined) return 4 + Number(details?.destination !== undefined) + finalLegs;
  return details?.substate === "WITHDRAWABLE" ? 3 : finalLegs;
}

/**
 * Returns everything of a message whose change is worth an event: not prices and estimates, which change all the time, nor
 * the IDs of other transfers, which have events of their own.
 */
function describeState({ sent, delivery, state }: TransferStatus, details: TransferDetails | undefined): string {
  const parts = [sent.id, sent.transactionHash, sent.timestamp, state, delivery?.transactionHash, delivery?.bonder];
  if (details !== undefined) {
    const { substate, payout, source, destination } = details;
    parts.push(substate, payout?.token, payout?.amount.toString());
    for (const leg of [source, destination]) parts.push(leg?.blockNumber, leg?.timestamp, String(leg?.isFinal));
  }
  return parts.join(" ");
}
