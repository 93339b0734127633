import { describe, expect, test } from "vitest";
import {
  getDefaultIndexStart,
  parseIndexStart,
  parseIndexStorage,
} from "../../../../src/transfers/index/index-options.js";

const now = Date.parse("2026-07-15T12:00:00Z");
const slugs = new Set(["ethereum", "optimism"]);

describe("the start of the index", () => {
  const week = Date.parse("2026-07-08T12:00:00Z") / 1_000;

  test("is 7 days ago by default", () => {
    expect(getDefaultIndexStart(now)).toEqual({ timestamp: week, blocks: new Map() });
  });

  test.each<[string, number, Record<string, number>]>([
    ["2024-01-01", 1_704_067_200, {}],
    ["2024-01-01T01:00Z", 1_704_070_800, {}],
    ["2024-02-29T00:00:01Z", 1_709_164_801, {}],
    ["ethereum:19000000", week, { ethereum: 19_000_000 }],
    [" optimism:0 , 2024-01-01, ethereum:1", 1_704_067_200, { optimism: 0, ethereum: 1 }],
  ])("is parsed from %j", (text, timestamp, blocks) => {
    expect(parseIndexStart(text, slugs, now)).toEqual({ timestamp, blocks: new Map(Object.entries(blocks)) });
  });

  test.each([
    "",
    "yesterday",
    "19000000",
    "2024-1-1",
    "2023-02-29",
    "2024-13-01",
    "2024-01-01T25:00Z",
    "2024-01-01T01:00",
    "1969-12-31",
    "2026-07-16",
    "nowhere:1",
    "ethereum:-1",
    "ethereum:0x10",
    "ethereum:1,ethereum:2",
    "2024-01-01,2024-01-02",
    "2024-01-01,",
  ])("is invalid as %j", (text) => {
    expect(parseIndexStart(text, slugs, now)).toBeUndefined();
  });
});

const sqlite = (file: string) => ({ storage: { kind: "sqlite", file } });

test.each([
  ["off", { storage: undefined }],
  ["sqlite:index.db", sqlite("index.db")],
  ["sqlite:/var/lib/a b.db", sqlite("/var/lib/a b.db")],
  ["sqlite:", undefined],
  // Every connection would have a database of its own.
  ["sqlite::memory:", undefined],
  ["postgres://x", undefined],
  ["index.db", undefined],
])("parses the storage %j", (text, storage) => {
  expect(parseIndexStorage(text)).toEqual(storage);
});
