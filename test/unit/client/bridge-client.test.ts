import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GetQuoteResponseSchema, ListAvailableRoutesResponseSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { createBridgeClient } from "../../../src/client.js";
import { startTestServer } from "../http/support/test-server.js";

const routes = toBinary(
  ListAvailableRoutesResponseSchema,
  create(ListAvailableRoutesResponseSchema, { routes: [{ token: "ETH" }] }),
);

test("sends each request with the given fetch, as one body, with the signal of the call", async () => {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (...args) => {
    requests.push(new Request(...args));
    return new Response(Uint8Array.from(routes), { headers: { "content-type": "application/proto" } });
  };
  const bridge = createBridgeClient("http://gateway.test/base/", { fetch, timeoutMs: 7_000 });
  const caller = new AbortController();
  const response = await bridge.listAvailableRoutes({ token: "ETH" }, { signal: caller.signal });
  expect(response.routes.map(({ token }) => token)).toEqual(["ETH"]);
  const [request] = requests;
  expect(request?.url).toBe("http://gateway.test/base/hop.bridge.v1.BridgeService/ListAvailableRoutes");
  expect(request?.headers.get("connect-timeout-ms")).toBe("7000");
  expect(new TextDecoder().decode(await request?.arrayBuffer())).toContain("ETH");
});

test("reads a response that the service has compressed and fetch has decompressed", async () => {
  const amountOutMin = "1".repeat(20_000);
  const { url } = await startTestServer({ getQuote: async () => create(GetQuoteResponseSchema, { amountOutMin }) });
  const encodings: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (...args) => {
    const response = await globalThis.fetch(...args);
    encodings.push(response.headers.get("content-encoding"));
    return response;
  };
  expect(await createBridgeClient(url, { fetch }).getQuote({})).toMatchObject({ amountOutMin });
  expect(encodings).toEqual(["gzip"]);
});

test("a service that is not reached is UNAVAILABLE with its cause, and an aborted call CANCELED", async () => {
  const cause = new TypeError("fetch failed");
  const gone = createBridgeClient("http://gateway.test", { fetch: () => Promise.reject(cause) });
  const error = ConnectError.from(await gone.listAvailableRoutes({}).catch((error: unknown) => error));
  expect(error).toMatchObject({ code: Code.Unavailable, rawMessage: "the service could not be reached", cause });

  const caller = new AbortController();
  const fetch: typeof globalThis.fetch = (_, init) =>
    new Promise((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new TypeError("aborted")));
      caller.abort();
    });
  const call = createBridgeClient("http://gateway.test", { fetch }).listAvailableRoutes({}, { signal: caller.signal });
  expect(ConnectError.from(await call.catch((error: unknown) => error)).code).toBe(Code.Canceled);
});

test("a response that breaks off is UNAVAILABLE with its cause", async () => {
  const cause = new TypeError("terminated");
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(routes.subarray(0, 3));
    },
    pull(controller) {
      controller.error(cause);
    },
  });
  const fetch: typeof globalThis.fetch = async () =>
    new Response(body, { headers: { "content-type": "application/proto" } });
  const bridge = createBridgeClient("http://gateway.test", { fetch });
  const error = ConnectError.from(await bridge.listAvailableRoutes({}).catch((error: unknown) => error));
  expect(error).toMatchObject({ code: Code.Unavailable, cause });
});
