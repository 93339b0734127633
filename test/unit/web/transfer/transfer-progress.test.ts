import { describe, expect, test } from "vitest";
import { describeExpectation } from "../../../../web/transfer/transfer-progress.js";

const SENT_AT = 1_795_000_000;
const leg = { blockNumber: 1, timestamp: SENT_AT, isFinal: false };
const waiting = { substate: "WAITING_FOR_BONDER", receivedAmount: "", receivedToken: "", source: leg } as const;

describe("the expectation of a pending transfer", () => {
  const expected = { timestamp: SENT_AT, details: { ...waiting, estimatedDeliveryAt: SENT_AT + 180 } };

  test("says within which time half of the transfers of the route are received", () => {
    expect(describeExpectation(expected, (SENT_AT + 60) * 1000)).toBe(
      "Half of the transfers of this route are received within 3 min.",
    );
  });

  test("says that it takes longer than usual after that time", () => {
    expect(describeExpectation(expected, (SENT_AT + 181) * 1000)).toContain("this one takes longer than usual");
  });

  test("says nothing where no time is known", () => {
    expect(describeExpectation({ timestamp: SENT_AT, details: waiting }, SENT_AT * 1000)).toBeUndefined();
    expect(describeExpectation({ timestamp: SENT_AT }, SENT_AT * 1000)).toBeUndefined();
  });
});
