import { expect, test } from "vitest";
import { parseBaseUrl, parseUrl } from "../../../src/chain/parse-url.js";

test("parses a host with letters outside ASCII on every one of many calls", () => {
  const hosts = new Set(Array.from({ length: 20_000 }, () => parseUrl("https://bücher.example.org/")?.host));
  expect([...hosts]).toEqual(["xn--bcher-kva.example.org"]);
});

test("returns undefined for a text that is no URL", () => {
  expect(parseUrl("rpc.example.org")).toBeUndefined();
});

test.each([
  ["https://docs.example/hop/", "https://docs.example/hop"],
  ["http://127.0.0.1:8000", "http://127.0.0.1:8000"],
  ["https://bücher.example/日本", "https://xn--bcher-kva.example/%E6%97%A5%E6%9C%AC"],
  ["https://docs.example/\r\nx-evil: 1", "https://docs.example/x-evil:%201"],
  ['https://docs.example/a>; rel="b"', "https://docs.example/a%3E;%20rel=%22b%22"],
])("returns the base URL %j in a form that fits into a header", (text, url) => {
  expect(parseBaseUrl(text)).toBe(url);
});

test.each([
  ...["ftp://docs.example", "docs.example", "https://user@docs.example", "https://:secret@docs.example"],
  ...["https://docs.example/?a=1", "https://docs.example/#a", "https://docs.example?", "https://docs.example#"],
])("returns undefined for %s, which is no base URL", (text) => {
  expect(parseBaseUrl(text)).toBeUndefined();
});
