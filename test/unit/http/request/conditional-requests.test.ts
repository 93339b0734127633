import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type GetQuoteResponse, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import type { CachePolicy } from "../../../../src/operations/operation.js";
import { HTTP_VERSIONS, sendHttp1 } from "../support/raw-client.js";
import { QUOTE, startTestServer } from "../support/test-server.js";

const POLICY: CachePolicy = { ageSeconds: 2, maxAgeSeconds: 60 };
const PATH = "/v1/quote?amount=1";
const frozen = (bonderFee: string): GetQuoteResponse =>
  Object.freeze(create(GetQuoteResponseSchema, { amountIn: "1", bonderFee }));

/** Returns the same response to all requests, or another one if the request says so. */
async function startCachingServer(policy: CachePolicy | "silent" = POLICY) {
  const [response, otherResponse] = [frozen("fee"), frozen("fée")];
  const server = await startTestServer({
    getQuote: ({ token }, context) => {
      if (policy !== "silent") context.setCachePolicy(policy);
      context.setResponseMetadata({ source: "chain" });
      switch (token) {
        case "other":
          return otherResponse;
        case "equal":
          return frozen("fee");
        case "unchanging":
          return Object.preventExtensions(create(GetQuoteResponseSchema, { amountIn: "1", bonderFee: "fee" }));
        case "loose":
          return { ...response };
        case "failed":
          throw new ServiceError("UPSTREAM_UNAVAILABLE", "no");
        default:
          return response;
      }
    },
  });
  const { etag = "" } = (await sendHttp1(server.port, PATH)).headers;
  return { ...server, etag };
}

const METHODS = HTTP_VERSIONS.flatMap(([name, send]) =>
  ["GET", "HEAD"].map((method) => [`${method} over ${name}`, send, method] as const),
);

describe("a cacheable response that is sent repeatedly", () => {
  test("has a strong validator of its text", async () => {
    const { port, etag } = await startCachingServer();
    expect(etag).toMatch(/^"[A-Za-z0-9_-]{43}"$/);
    const etagOf = async (path: string) => (await sendHttp1(port, path)).headers.etag;
    expect(await etagOf(PATH)).toBe(etag);
    expect(await etagOf(`${PATH}&token=equal`)).toBe(etag);
    expect(await etagOf(`${PATH}&token=unchanging`)).toBe(etag);
    expect(await etagOf(`${PATH}&token=other`)).toMatch(/^"[A-Za-z0-9_-]{43}"$/);
    expect(await etagOf(`${PATH}&token=other`)).not.toBe(etag);
  });

  test("is complete if its text has more bytes than characters", async () => {
    const { port } = await startCachingServer();
    for (let i = 0; i < 2; i += 1) {
      const { headers, body } = await sendHttp1(port, `${PATH}&token=other`);
      expect(JSON.parse(body)).toMatchObject({ bonderFee: "fée" });
      expect(headers["content-length"]).toBe(String(Buffer.byteLength(body)));
    }
  });

  test.each(METHODS)("returns 304 to %s with its validator", async (_, send, method) => {
    const { port, etag, accessLines, logged } = await startCachingServer();
    const headers = { "if-none-match": etag, "x-request-id": "mine" };
    const result = await send(port, PATH, { method, headers });
    expect([result.status, result.body]).toEqual([304, ""]);
    expect(result.headers).toMatchObject({
      etag,
      age: "2",
      "cache-control": "public, max-age=60",
      vary: "Accept-Encoding",
      source: "chain",
      "access-control-allow-origin": "*",
      "access-control-expose-headers": expect.stringContaining("ETag"),
    });
    for (const name of ["content-length", "content-type", "transfer-encoding", "x-request-id"]) {
      expect(result.headers).not.toHaveProperty(name);
    }
    await logged(2);
    expect(accessLines[1]).toMatchObject({ requestId: "mine", operation: QUOTE, code: "ok" });
    // The connection stays usable.
    expect((await send(port, `${PATH}&token=other`, { method, headers })).status).toBe(200);
  });

  test.each([
    ["*", 304],
    [" * ", 304],
    ["W/ETAG", 304],
    ['"other", ETAG', 304],
    ['W/"other" ,W/ETAG,"third"', 304],
    [",,ETAG", 304],
    ['"a,b",ETAG', 304],
    ['"other"', 200],
    ['W/"other"', 200],
    ["", 200],
    ["BARE", 200],
    ['"*"', 200],
    ['*, "other"', 200],
    ["w/ETAG", 200],
    ["W/W/ETAG", 200],
    ['"xETAGx"', 200],
  ])("answers If-None-Match: %s with %i", async (template, status) => {
    const { port, etag } = await startCachingServer();
    const value = template.replace("ETAG", etag).replace("BARE", etag.slice(1, -1));
    expect((await sendHttp1(port, PATH, { headers: { "if-none-match": value } })).status).toBe(status);
  });

  test("matches its validator in any list", async () => {
    const { port, etag } = await startCachingServer();
    const tags = fc.tuple(fc.constantFrom("", "W/"), fc.stringMatching(/^[!#-+\--~]{0,12}$/));
    const others = fc.array(
      tags.map(([weak, text]) => `${weak}"${text}"`),
      { maxLength: 4 },
    );
    const separators = fc.constantFrom(",", ", ", " ,\t");
    const request = async (list: readonly string[], separator: string) =>
      (await sendHttp1(port, PATH, { headers: { "if-none-match": list.join(separator) } })).status;
    await fc.assert(
      fc.asyncProperty(
        others,
        others,
        separators,
        fc.constantFrom("", "W/"),
        async (before, after, separator, weak) => {
          expect(await request([...before, `${weak}${etag}`, ...after], separator)).toBe(304);
          expect(await request([...before, ...after], separator)).toBe(200);
        },
      ),
      { numRuns: 50 },
    );
  });

  test.each([
    ["a response object that is new for each request", POLICY, "loose", 200],
    ["a private response", "private", "", 200],
    ["a response without a cache policy", "silent", "", 200],
    ["an error", POLICY, "failed", 503],
  ] as const)("does not include %s", async (_, policy, token, status) => {
    const { port } = await startCachingServer(policy);
    for (const value of ["*", (await startCachingServer()).etag]) {
      const result = await sendHttp1(port, `${PATH}&token=${token}`, { headers: { "if-none-match": value } });
      expect(result.status).toBe(status);
      expect(result.body.length).toBeGreaterThan(0);
      expect(result.headers).not.toHaveProperty("etag");
    }
  });
});

test("omits stale-while-revalidate if the policy has none", async () => {
  const { port } = await startCachingServer({ ageSeconds: 0.5, maxAgeSeconds: 86_400.5 });
  expect((await sendHttp1(port, PATH)).headers).toMatchObject({ age: "0", "cache-control": "public, max-age=86400" });
});
