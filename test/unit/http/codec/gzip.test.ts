import { describe, expect, test } from "vitest";
import { acceptsGzip } from "../../../../src/http/codec/gzip.js";

describe("acceptsGzip", () => {
  test.each([
    "gzip",
    "GZIP",
    "deflate, gzip",
    "gzip;q=1",
    "br;q=1.0, gzip; q=0.8, *;q=0.1",
    "gzip;q=0.001",
    "*",
    "br, *;q=0.5",
    "identity,deflate,gzip",
  ])("accepts %j", (header) => {
    expect(acceptsGzip(header)).toBe(true);
  });

  test.each([
    undefined,
    "",
    "identity",
    "br",
    "gzip;q=0",
    "gzip; q=0.000",
    "gzip;Q=0",
    "gzip;q=0, *",
    "*, gzip;q=0",
    "*;q=0",
    "x-gzip2",
    "gzipped",
  ])("does not accept %j", (header) => {
    expect(acceptsGzip(header)).toBe(false);
  });
});
