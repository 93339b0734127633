import { describe, expect, test } from "vitest";
import { hasFilters, matchesFilters, toAccountQuery, toViewParameters } from "../../../../web/account/account-query.js";
import { appendPage, applyTransfer } from "../../../../web/account/transfer-list.js";
import type { TransferStatusResponse } from "../../../../web/shared/api/api-types.js";

function createTransfer(name: string, timestamp: number, changes: Partial<TransferStatusResponse> = {}) {
  const values = { transferId: name, transactionHash: `hash of ${name}`, timestamp, state: "PENDING", token: "USDT" };
  const chains = { sourceChainSlug: "polygon", destinationChainSlug: "arbitrum", bondTransactionHash: "" };
  return { ...values, ...chains, ...changes } as TransferStatusResponse;
}
const list = [createTransfer("c", 30), createTransfer("b", 20), createTransfer("a", 10)];
const listed = { isAccepted: true, isComplete: false };
const toIds = (transfers: readonly TransferStatusResponse[]) => transfers.map(({ transferId }) => transferId);

describe("a list of transfers", () => {
  test("replaces a transfer whose state has changed, in its place, whatever the filters", () => {
    const changed = createTransfer("b", 20, { state: "BONDED" });
    const next = applyTransfer(list, changed, { ...listed, isAccepted: false });
    expect(toIds(next)).toEqual(["c", "b", "a"]);
    expect(next[1]).toBe(changed);
  });

  test("stays the same when the state is the one that is listed", () => {
    expect(applyTransfer(list, createTransfer("b", 20), listed)).toBe(list);
  });

  test.each([
    ["newest", 40, ["new", "c", "b", "a"]],
    ["between", 25, ["c", "new", "b", "a"]],
  ])("takes a new transfer by its time: %s", (_, timestamp, expected) => {
    expect(toIds(applyTransfer(list, createTransfer("new", timestamp), listed))).toEqual(expected);
  });

  test("leaves transfers that are older than its last to the further pages", () => {
    const old = createTransfer("old", 5);
    expect(applyTransfer(list, old, listed)).toBe(list);
    expect(toIds(applyTransfer(list, old, { ...listed, isComplete: true }))).toEqual(["c", "b", "a", "old"]);
  });

  test("leaves out new transfers that do not pass the filters", () => {
    expect(applyTransfer(list, createTransfer("new", 40), { ...listed, isAccepted: false })).toBe(list);
  });

  test("keeps transfers of one id from two transactions apart", () => {
    const twin = createTransfer("b", 21, { transactionHash: "another" });
    expect(applyTransfer(list, twin, listed)).toHaveLength(4);
  });

  test("appends a page without what a watch has inserted", () => {
    expect(toIds(appendPage(list, [createTransfer("a", 10), createTransfer("z", 5)]))).toEqual(["c", "b", "a", "z"]);
  });
});

describe("the query of an account", () => {
  test("has the filters of the URL hash and makes the same hash again", () => {
    const parameters = { of: "0xAb", state: "PENDING", token: "ETH", from: "base", to: "nova", network: "goerli" };
    const query = toAccountQuery(new Map(Object.entries(parameters)));
    expect(query).toMatchObject({ account: "0xAb", token: "ETH", fromChain: "base", toChain: "nova" });
    expect(Object.fromEntries(toViewParameters(query))).toEqual(parameters);
    expect(hasFilters(query)).toBe(true);
    expect(hasFilters(toAccountQuery(new Map([["of", "0xAb"]])))).toBe(false);
  });

  test.each([
    [{}, true],
    [{ state: "PENDING", token: "USDT", from: "polygon", to: "arbitrum" }, true],
    [{ state: "BONDED" }, false],
    [{ token: "ETH" }, false],
    [{ from: "base" }, false],
    [{ to: "base" }, false],
  ])("filters transfers by %j", (filters, expected) => {
    const query = toAccountQuery(new Map(Object.entries({ of: "0xAb", ...filters })));
    expect(matchesFilters(query, createTransfer("a", 10))).toBe(expected);
  });
});
