import { describe, expect, test } from "vitest";
import { CHAIN_ID_CALL, limitResponseMembers } from "../../../../src/chain/json-rpc/rpc-codec.js";
import { JsonScanner } from "../../../../src/resilience/http-client/json-size.js";

const scan = (calls: number, text: string) =>
  new JsonScanner({ depth: 16, ...limitResponseMembers(Array(calls).fill(CHAIN_ID_CALL)) }).scan(Buffer.from(text));
const respond = (result: unknown) => ({ jsonrpc: "2.0", id: 1, result });

const hash = `0x${"a".repeat(64)}`;
/** The shortest log that a node sends. */
const log = {
  address: `0x${"a".repeat(40)}`,
  topics: [hash],
  data: "0x",
  blockNumber: "0x1",
  transactionHash: hash,
  transactionIndex: "0x0",
  blockHash: hash,
  logIndex: "0x0",
  removed: false,
};
/** As many addresses as fit into a transaction, none with storage keys: its sender chooses them. */
const accessList = Array(5_000).fill({ address: log.address, storageKeys: [] });
const withdrawal = { index: "0x1", validatorIndex: "0x1", address: `0x${"a".repeat(40)}`, amount: "0x1" };
const header = {
  ...Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, "0x0"])),
  transactions: Array(5_000).fill(hash),
  withdrawals: Array(16).fill(withdrawal),
};

describe("the members of a response", () => {
  test.each([
    ["a number", 1, respond("0x1")],
    ["a batch of numbers", 1_000, Array(1_000).fill(respond("0x1"))],
    ["a block header", 1, respond(header)],
    ["a batch of block headers", 100, Array(100).fill(respond({ ...header, transactions: [] }))],
    ["withdrawals", 1, respond({ ...header, withdrawals: Array(1_000).fill(withdrawal) })],
    ["a transaction with an access list", 1, respond({ ...log, accessList })],
    ["logs", 1, respond(Array(10_000).fill(log))],
    ["receipts", 2, Array(2).fill(respond({ ...log, logs: Array(2_000).fill(log) }))],
  ])("suffice for %s", (_, calls, response) => {
    expect(scan(calls, JSON.stringify(response))).toBeUndefined();
  });

  test("do not suffice for lists without content", () => {
    expect(scan(1, JSON.stringify(respond(Array(200).fill([]))))).toEqual({ kind: "members" });
    expect(scan(100, JSON.stringify(respond(Array(100_000).fill(0))))).toEqual({ kind: "members" });
  });
});
