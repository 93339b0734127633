import { expect, test } from "vitest";
import { parseUrl } from "../../../src/chain/parse-url.js";

test("parses a host with letters outside ASCII on every one of many calls", () => {
  const hosts = new Set(Array.from({ length: 20_000 }, () => parseUrl("https://bücher.example.org/")?.host));
  expect([...hosts]).toEqual(["xn--bcher-kva.example.org"]);
});

test("returns undefined for a text that is no URL", () => {
  expect(parseUrl("rpc.example.org")).toBeUndefined();
});
