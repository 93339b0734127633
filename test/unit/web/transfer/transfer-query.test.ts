import { expect, test } from "vitest";
import { toTransferQueries } from "../../../../web/transfer/transfer-query.js";

const hex = `0x${"aB".repeat(32)}`;

test.each([
  [{ of: hex }, [{ transferHash: hex }, { transferId: hex }]],
  [{ id: hex }, [{ transferId: hex }]],
  [{ of: "184467" }, [{ transferId: "184467" }]],
  // What it should have been is for the service to say.
  [{ of: "0x12" }, [{ transferHash: "0x12" }]],
  [
    { of: hex, network: "goerli" },
    [
      { transferHash: hex, network: "goerli" },
      { transferId: hex, network: "goerli" },
    ],
  ],
  [{ id: hex, network: "mainnet" }, [{ transferId: hex }]],
])("%j is asked for as %j", (values, questions) => {
  expect(toTransferQueries(new Map(Object.entries(values)))).toEqual(questions);
});
