import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createEndpointNamer, generateEndpointNameKey } from "../../../../src/chain/endpoints/endpoint-name.js";

const url = "https://s3cr3t.rpc.example/v3/s3cr3t";

test("names an endpoint by its chain, its place and six digits, without any part of the URL", () => {
  expect(createEndpointNamer()("optimism", 2, url)).toMatch(/^optimism\[2\]#[0-9a-f]{6}$/);
});

test("gives one URL the same digits everywhere, and two URLs different ones", () => {
  const nameEndpoint = createEndpointNamer(generateEndpointNameKey());
  const digits = nameEndpoint("optimism", 1, url).slice(-6);
  expect(nameEndpoint("base", 3, url).slice(-6)).toBe(digits);
  expect(nameEndpoint("optimism", 1, `${url}/`).slice(-6)).not.toBe(digits);
});

test("derives the digits from the key, so that a guessed URL cannot be verified", () => {
  const key = generateEndpointNameKey();
  expect(createEndpointNamer(key)("base", 1, url)).toBe(createEndpointNamer(key)("base", 1, url));
  const names = new Set([1, 2, 3].map(() => createEndpointNamer()("base", 1, url)));
  expect(names.size).toBeGreaterThan(1);
  expect(names).not.toContain(`base[1]#${createHash("sha256").update(url).digest("hex").slice(0, 6)}`);
});
