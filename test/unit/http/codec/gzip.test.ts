import { expect, test } from "vitest";
import { acceptsGzip } from "../../../../src/http/codec/gzip.js";

test.each([
  ...["gzip", "GZIP", "deflate, gzip", "gzip;q=1", "br;q=1.0, gzip; q=0.8, *;q=0.1", "gzip;q=0.001", "*"],
  ...["br, *;q=0.5", "identity,deflate,gzip"],
])("%j accepts gzip", (header) => {
  expect(acceptsGzip(header)).toBe(true);
});

test.each([
  ...[undefined, "", "identity", "br", "gzip;q=0", "gzip; q=0.000", "gzip;Q=0", "gzip;q=0, *", "*, gzip;q=0"],
  ...["*;q=0", "x-gzip2", "gzipped"],
])("%j does not accept gzip", (header) => {
  expect(acceptsGzip(header)).toBe(false);
});
