import { readFileSync } from "node:fs";
import { get, ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { type RecordedResponse, recordResponses } from "../../support/contract/response-recorder.js";
import { readOpenApi } from "../../support/contract/response-validator.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../../support/service/index-coverage.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";
import { sendHttp1, sendHttp2 } from "../../unit/http/support/raw-client.js";

const folder = useTemporaryFolder();
// Lists of transfers need an index.
const gateway = useGateway(() => ({ INDEX: `sqlite:${join(folder(), "index")}`, INDEX_FROM: "2020-01-01" }));
beforeAll(() => waitUntilIndexed(gateway, inject("network").chains));

const committed = readFileSync(new URL("../../../gen/openapi.json", import.meta.url));

/** Returns the bytes as received, for a path as written. */
function ask(path: string, headers: Readonly<Record<string, string>> = {}) {
  return new Promise<{ status: number; headers: Readonly<Record<string, unknown>>; body: Buffer }>(
    (resolve, reject) => {
      const { hostname, port } = new URL(gateway.url);
      get({ hostname, port, path, headers, agent: false }, (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () =>
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }),
        );
      }).on("error", reject);
    },
  );
}

test("serves gen/openapi.json unchanged to any origin, and 304 to a caller that has it", async () => {
  const { status, headers, body } = await ask("/openapi.json");
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "access-control-allow-origin": "*",
    "cache-control": "no-cache",
  });
  expect(body.equals(committed)).toBe(true);
  const compressed = await ask("/openapi.json", { "accept-encoding": "gzip" });
  expect(compressed.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(compressed.body).equals(committed)).toBe(true);
  const again = await ask("/openapi.json", { "if-none-match": String(headers.etag) });
  expect([again.status, again.body.length]).toEqual([304, 0]);
});

test.each([
  "/assets/../package.json",
  "/assets/%2e%2e/%2e%2e/package.json",
  "/assets/..%2f..%2fpackage.json",
  "/assets//etc/passwd",
  "/assets/",
  "/assets",
  "/docs/",
  "/docs.html",
  "/assets/docs.html",
  "/gen/openapi.json",
])("returns 404 for %s", async (path) => {
  const { status, body } = await ask(path);
  expect([status, JSON.parse(body.toString()).reason]).toEqual([404, "PATH_NOT_FOUND"]);
});

interface Described {
  readonly parameters: readonly { readonly name?: string; readonly example?: unknown; readonly required?: boolean }[];
  readonly responses: {
    readonly 200: { readonly content: { readonly "application/json"?: { readonly example: object } } };
  };
}

/** Examples of filters are of one filter each: together they leave nothing. */
const FILTERED_PATH = "/v1/transfers";

/** Returns the path with the examples of its parameters. */
function toExampleQuery(path: string, { parameters }: Described): string {
  const given = parameters.filter(({ required = false }) => required || path !== FILTERED_PATH);
  const query = given.flatMap(({ name = "", example }): [string, string][] => {
    if (Array.isArray(example)) return example.map((item) => [name, String(item)]);
    return example === undefined || typeof example === "object" ? [] : [[name, String(example)]];
  });
  return `${path}?${new URLSearchParams(query)}`;
}

describe.each(
  Object.entries(readOpenApi().paths).flatMap(([path, described]) => {
    const operation = described.get as unknown as Described;
    // The events of a stream are checked where it is watched.
    const json = operation.responses[200].content["application/json"];
    return json === undefined ? [] : [[path, toExampleQuery(path, operation), json.example] as const];
  }),
)("the examples of %s", (path, asked, example) => {
  test("match the responses of the local network", async () => {
    const { status, body } = await gateway.get(asked);
    // Except for values that depend on the time of the request, such as the fee, and of the start of the network.
    const varying =
      /^(deadline|destinationDeadline|timestamp|coveredFrom|coveredUntil|bonderFee|destinationAmountOutMin|estimatedRec.*)$/;
    const steady = (text: string) => JSON.parse(text, (name, value) => (varying.test(name) ? typeof value : value));
    const expected = steady(JSON.stringify(example));
    // The example has one transfer of the account.
    if (path === FILTERED_PATH) expected.transfers = expect.arrayContaining(expected.transfers);
    expect([status, steady(JSON.stringify(body))]).toEqual([200, expected]);
    expect(Object.keys(body as object)).toEqual(Object.keys(example));
  });

  test.each([
    ["HTTP/1.1", sendHttp1],
    ["h2c", sendHttp2],
  ])("are recorded over %s for validation, errors too", async (_, send) => {
    const seen: RecordedResponse[] = [];
    const stop = recordResponses([ServerResponse, Http2ServerResponse], (answer) => seen.push(answer));
    onTestFinished(() => stop());
    const { hostname, port } = new URL(gateway.url);
    expect(hostname).toBe("127.0.0.1");
    const got = [
      await send(Number(port), asked),
      await send(Number(port), asked, { method: "HEAD" }),
      await send(Number(port), `${path}?nothing=1`),
      await send(Number(port), path, { method: "PUT" }),
      await send(Number(port), `${path}/more`),
    ];
    expect(got.map(({ status }) => status)).toEqual([200, 200, 400, 405, 404]);
    expect(seen.map(({ status, body }) => [status, body])).toEqual(got.map(({ status, body }) => [status, body]));
    for (const [index, { headers }] of seen.entries()) expect(got[index]?.headers).toMatchObject(headers);
  });
});
