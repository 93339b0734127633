import type { AttestationClient } from "../../hop/attestation-client.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { withTimeout } from "../../resilience/with-timeout.js";
import type { TransferDetails } from "../../transfers/details/transfer-details.js";
import type { CallContext } from "../operation.js";

/** Longest wait for the attestation source, in milliseconds: no status depends on it. */
const TIMEOUT_MS = 1_000;
const SILENT = "does not respond";

/**
 * Warns of transfers that wait for an attestation while it cannot be had: their statuses come from the chains alone, which
 * do not tell whether the burn is attested.
 * @param attestations undefined: the source is switched off
 */
export function warnOfMissingAttestations(
  details: readonly Pick<TransferDetails, "substate">[],
  attestations: Pick<AttestationClient, "findOutage"> | undefined,
  context: Pick<CallContext, "addWarning">,
  remainingMs: () => number,
): MaybePromise<void> {
  if (!details.some(({ substate }) => substate === "WAITING_FOR_ATTESTATION")) return undefined;
  const warn = (outage: string | undefined): void => {
    if (outage === undefined) return;
    context.addWarning(`it is not known what is attested: the CCTP attestation source ${outage}`);
  };
  if (attestations === undefined) return warn("is switched off (ATTESTATION_API_URL)");
  const timeoutMs = Math.min(TIMEOUT_MS, Math.max(0, remainingMs() / 2));
  return withTimeout<string | undefined>(attestations.findOutage(), timeoutMs, SILENT).then(warn);
}
