import { expect, test } from "vitest";
import { selectMatchingQuery, toTransferQueries } from "../../../../web/transfer/transfer-query.js";

const hex = `0x${"aB".repeat(32)}`;

test.each([
  [{ of: hex }, [{ transferHash: hex }, { transferId: hex }]],
  [{ id: hex }, [{ transferId: hex }]],
  [{ of: "184467" }, [{ transferId: "184467" }]],
  // Malformed: the service explains what is wrong.
  [{ of: "0x12" }, [{ transferHash: "0x12" }]],
  [
    { of: hex, network: "goerli" },
    [
      { transferHash: hex, network: "goerli" },
      { transferId: hex, network: "goerli" },
    ],
  ],
  [{ id: hex, network: "mainnet" }, [{ transferId: hex }]],
  [{ id: hex, network: "" }, [{ transferId: hex }]],
])("%j is queried as %j", (parameters, queries) => {
  expect(toTransferQueries(new Map(Object.entries(parameters)))).toEqual(queries);
});

test.each([
  ["its id", hex.toLowerCase(), { transferId: hex }],
  ["the hash of its transaction", `0x${"12".repeat(32)}`, { transferHash: hex }],
])("selects the query that named a transfer by %s", (_, transferId, expected) => {
  expect(selectMatchingQuery(toTransferQueries(new Map([["of", hex]])), { transferId })).toEqual(expected);
});
