import { expect, test } from "vitest";
import { createTransferPresenter } from "../../../../src/operations/transfers/transfer-presenter.js";
import type { TransferDetails } from "../../../../src/transfers/details/transfer-details.js";
import { getFingerprintStage } from "../../../../src/transfers/watch/resume-token.js";
import { createStatus } from "../../../support/stubs/transfer-fixtures.js";

const leg = (isFinal: boolean) => ({ blockNumber: 1, timestamp: 1, isFinal });
const pending = { payout: undefined, destination: undefined, estimatedDeliveryAt: undefined };

test("the stage of a transfer grows with all that is learned of it", async () => {
  const delivered = createStatus();
  const sent = createStatus({ delivery: undefined, isFinal: false });
  const received = { ...pending, substate: "RECEIVED" as const };
  const history: readonly (readonly [typeof sent, TransferDetails | undefined])[] = [
    [sent, { ...pending, substate: "WAITING_FOR_SETTLEMENT", source: leg(false) }],
    [sent, { ...pending, substate: "WAITING_FOR_SETTLEMENT", source: leg(true) }],
    [sent, { ...pending, substate: "WITHDRAWABLE", source: leg(true) }],
    [delivered, { ...received, source: leg(false) }],
    [delivered, { ...received, source: leg(false), destination: leg(false) }],
    [delivered, { ...received, source: leg(true), destination: leg(false) }],
    [delivered, { ...received, source: leg(true), destination: leg(true) }],
  ];
  const stages: number[] = [];
  for (const [status, details] of history) {
    const present = createTransferPresenter({
      details: { find: () => [{ details: details as TransferDetails }] },
      prices: { peekTable: () => undefined, getUsdPrice: async () => 1 } as never,
    });
    stages.push(getFingerprintStage((await present(status, true, {} as never)).fingerprint));
  }
  expect(stages).toEqual([0, 1, 3, 4, 5, 6, 7]);
});
