import { connect as connectSocket } from "node:net";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ErrorInfoSchema, HelpSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { type TestGateway, useGateway } from "../../support/service/in-process-gateway.js";

const DOCS_URL = "https://docs.example/hop";
/** Transports by protocol, of which some take the fast and some the general path. */
const transports: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC with JSON": (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect over HTTP/2": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
};

/** Returns the details of errors of a call, of a stream and of a request that does not parse. */
async function readDetails(gateway: TestGateway, create: (baseUrl: string) => Transport) {
  const bridge = createClient(BridgeService, create(gateway.url));
  const failures = [
    bridge.getQuote({ amount: "1", token: "USDT", fromChain: "polygon", toChain: "base", slippage: 0.5 }),
    bridge
      .watchTransfers({ transferHash: ["0x"] })
      [Symbol.asyncIterator]()
      .next(),
  ];
  return Promise.all(
    failures.map(async (failure) => {
      const error = ConnectError.from(await Promise.resolve(failure).catch((caught: unknown) => caught));
      const [info] = error.findDetails(ErrorInfoSchema);
      return {
        reason: info?.reason,
        links: error.findDetails(HelpSchema).flatMap(({ links }) => links.map(({ url }) => url)),
      };
    }),
  );
}

/** Sends bytes that are no HTTP request, and returns the response. */
function sendRaw(port: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connectSocket(Number(port), "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("end", () => resolve(text)).on("error", reject);
  });
}

describe.each([
  ["with DOCS_URL", `${DOCS_URL}/`, (reason: string) => [`${DOCS_URL}/errors.md#${reason.toLowerCase()}`]],
  ["without DOCS_URL", "off", () => []],
])("%s, errors", (_, setting, toLinks) => {
  const gateway = useGateway({ DOCS_URL: setting });

  test.each(Object.keys(transports))("over %s have the links in google.rpc.Help", async (name) => {
    const create = transports[name];
    if (create === undefined) throw new Error("no transport");
    expect(await readDetails(gateway, create)).toEqual(
      ["UNSUPPORTED_ROUTE", "INVALID_PARAMETER"].map((reason) => ({ reason, links: toLinks(reason) })),
    );
  });

  test.each([
    ["/v1/quote", "MISSING_PARAMETER"],
    ["/v1/nothing", "PATH_NOT_FOUND"],
    ["/v1/transfers:watch?transferHash=1", "INVALID_PARAMETER"],
    [`/${"x".repeat(9_000)}`, "INVALID_PARAMETER"],
  ])("of GET %.30s have the link as a header", async (path, reason) => {
    const response = await fetch(`${gateway.url}${path}`);
    const links = toLinks(reason).map((url) => `<${url}>; rel="help"`);
    expect([response.headers.get("link")].filter((link) => link !== null)).toEqual(links);
    // Pages of another origin may read it.
    const exposed = response.headers.get("access-control-expose-headers")?.split(", ");
    expect(exposed?.filter((name) => name === "Link")).toHaveLength(links.length);
  });

  test("about what is no HTTP request have the link as a header", async () => {
    const response = await sendRaw(new URL(gateway.url).port, "NONSENSE\r\n\r\n");
    const links = toLinks("INVALID_PARAMETER").map((url) => `<${url}>; rel="help"`);
    expect([...response.matchAll(/^link: (.*)\r$/gim)].map(([, link]) => link)).toEqual(links);
  });

  test("about a Connect request that does not parse have the links", async () => {
    const path = "/hop.bridge.v1.BridgeService/GetQuote";
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body: "{" });
    const { code, details } = (await response.json()) as { code: string; details: readonly { type: string }[] };
    expect(code).toBe("invalid_argument");
    const types = toLinks("INVALID_PARAMETER").map(() => "google.rpc.Help");
    expect(details.map(({ type }) => type)).toEqual(["google.rpc.ErrorInfo", ...types]);
  });

  test("are described in /openapi.json", async () => {
    const { externalDocs } = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as {
      externalDocs?: { url: string };
    };
    expect(externalDocs?.url).toBe(toLinks("INTERNAL").length === 0 ? undefined : DOCS_URL);
  });

  test("leave good answers without links", async () => {
    const response = await fetch(`${gateway.url}/v1/available-routes`);
    expect([response.status, response.headers.get("link")]).toEqual([200, null]);
  });
});
