import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type Client, type ClientDuplexStream, type ClientReadableStream, Metadata, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from "../../../../gen/grpc/health/v1/health_pb.js";
import {
  ExtensionRequestSchema,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../../../gen/grpc/reflection/v1/reflection_pb.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { sendHttp1, sendHttp2On } from "../support/raw-client.js";
import { describeOnBothPaths, startTestServer } from "../support/test-server.js";

const clients = new Set<Client>();
afterEach(() => {
  for (const client of clients) client.close();
  clients.clear();
});
function newClient(port: number): Client {
  const client = createGrpcClient(port);
  clients.add(client);
  return client;
}

const serialize =
  <T extends DescMessage>(schema: T) =>
  (init: MessageInitShape<T>): Buffer =>
    Buffer.from(toBinary(schema, create(schema, init)));
const SERVICES = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
  "hop.bridge.v1.BridgeService",
  "test.kinds.v1.KindsService",
];

describeOnBothPaths(() => {
  describe("health checking", () => {
    const check = (client: Client, service: string) =>
      callUnaryGrpc(
        client,
        "/grpc.health.v1.Health/Check",
        HealthCheckRequestSchema,
        HealthCheckResponseSchema,
        create(HealthCheckRequestSchema, { service }),
      );
    const watch = (client: Client, service: string): ClientReadableStream<{ status: Serving }> =>
      client.makeServerStreamRequest(
        "/grpc.health.v1.Health/Watch",
        serialize(HealthCheckRequestSchema),
        (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
        { service },
        new Metadata(),
      );

    test.each(["", ...SERVICES])("reports SERVING for %j", async (service) => {
      const { port } = await startTestServer();
      expect((await check(newClient(port), service)).message?.status).toBe(Serving.SERVING);
    });

    test("returns NOT_FOUND for an unknown service", async () => {
      const { port, accessLines, internalErrors, waitForAccessLines } = await startTestServer();
      const { error } = await check(newClient(port), "hop.bridge.v1.Nope");
      expect(error?.code).toBe(status.NOT_FOUND);
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([
        { operation: "grpc.health.v1.Health/Check", protocol: "grpc", code: "not_found" },
      ]);
      expect(internalErrors).toEqual([]);
    });

    test("is served over Connect too", async () => {
      const { port } = await startTestServer();
      const json = { method: "POST", headers: { "content-type": "application/json" } };
      const known = await sendHttp1(port, "/grpc.health.v1.Health/Check", { ...json, body: "{}" });
      expect(known).toMatchObject({ status: 200, body: '{"status":"SERVING"}' });
      const unknown = await sendHttp1(port, "/grpc.health.v1.Health/Check", { ...json, body: '{"service":"x"}' });
      expect(unknown).toMatchObject({ status: 404, body: '{"code":"not_found","message":"unknown service"}' });
    });

    test("Watch ends when the server drains, without delaying the shutdown", async () => {
      const { port, server, accessLines } = await startTestServer();
      const stream = watch(newClient(port), "hop.bridge.v1.BridgeService");
      const seen: Serving[] = [];
      stream.on("data", (answer: { status: Serving }) => seen.push(answer.status));
      await once(stream, "data");
      const ended = once(stream, "end");
      const start = performance.now();
      await server.close(600_000);
      await ended;
      expect(performance.now() - start).toBeLessThan(60_000);
      expect(seen).toEqual([Serving.SERVING, Serving.NOT_SERVING]);
      expect(accessLines).toMatchObject([{ operation: "grpc.health.v1.Health/Watch", code: "ok" }]);
    });

    test("Watch works over HTTP/1.1, however long nothing changes", async () => {
      const { port, server } = await startTestServer({ limits: { responseMs: 100 } });
      const headers = { "content-type": "application/connect+json" };
      const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
      const answer = sendHttp1(port, "/grpc.health.v1.Health/Watch", { method: "POST", headers, body });
      await expect.poll(() => server.getLoad().streamingCalls).toBe(1);
      await sleep(400);
      await server.close(600_000);
      expect((await answer).body).toMatch(/"SERVING".*"NOT_SERVING"/s);
    });

    test.each([
      ["gRPC", "application/grpc", "grpc-timeout", "200m", "", /./],
      ["Connect", "application/connect+json", "connect-timeout-ms", "200", "{}", /"code":"deadline_exceeded"/],
    ])(
      "Watch over %s ends with DEADLINE_EXCEEDED at the deadline of the caller",
      async (_, type, name, value, message, said) => {
        const { url, accessLines, waitForAccessLines } = await startTestServer();
        const session = connectHttp2(url);
        const path = "/grpc.health.v1.Health/Watch";
        const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, [name]: value });
        let ended: unknown;
        stream.on("trailers", (trailers) => {
          ended = trailers["grpc-status"];
        });
        let text = "";
        stream.on("data", (chunk) => {
          text += chunk;
        });
        stream.end(Buffer.from(`\0\0\0\0${String.fromCharCode(message.length)}${message}`));
        await once(stream, "close");
        expect(text).toMatch(said);
        if (type === "application/grpc") expect(ended).toBe(String(status.DEADLINE_EXCEEDED));
        await waitForAccessLines(1);
        expect(accessLines).toMatchObject([{ code: "deadline_exceeded" }]);
        session.destroy();
      },
    );

    test("Watch reports SERVICE_UNKNOWN for an unknown service", async () => {
      const { port, accessLines, waitForAccessLines } = await startTestServer();
      const stream = watch(newClient(port), "nope");
      stream.on("error", () => {});
      const [answer] = await once(stream, "data");
      expect(answer.status).toBe(Serving.SERVICE_UNKNOWN);
      stream.cancel();
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ code: "canceled" }]);
    });

    test("reports NOT_SERVING as soon as the server drains", async () => {
      const { url, server } = await startTestServer();
      const session = connectHttp2(url);
      const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
      const before = await sendHttp2On(session, "/grpc.health.v1.Health/Check", json);
      const closing = server.close(5000);
      const after = await sendHttp2On(session, "/grpc.health.v1.Health/Check", json);
      expect([before.body, after.body]).toEqual(['{"status":"SERVING"}', '{"status":"NOT_SERVING"}']);
      await closing;
    });
  });

  describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
    function open(
      port: number,
    ): ClientDuplexStream<MessageInitShape<typeof ServerReflectionRequestSchema>, ServerReflectionResponse> {
      // Both versions have the same messages on the wire.
      return newClient(port).makeBidiStreamRequest(
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        serialize(ServerReflectionRequestSchema),
        (bytes) => fromBinary(ServerReflectionResponseSchema, bytes),
        new Metadata(),
      );
    }
    async function ask(port: number, ...questions: ServerReflectionRequest["messageRequest"][]) {
      const stream = open(port);
      const answers: ServerReflectionResponse[] = [];
      stream.on("data", (answer: ServerReflectionResponse) => answers.push(answer));
      for (const messageRequest of questions) stream.write({ host: "h", messageRequest });
      stream.end();
      await once(stream, "end");
      return answers.map(({ messageResponse }) => messageResponse);
    }
    const filesOf = (answer: ServerReflectionResponse["messageResponse"] | undefined) =>
      answer?.case === "fileDescriptorResponse"
        ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        : [];

    test("lists the services", async () => {
      const { port, accessLines, waitForAccessLines } = await startTestServer();
      const [answer] = await ask(port, { case: "listServices", value: "" });
      expect(answer?.case === "listServicesResponse" && answer.value.service.map(({ name }) => name)).toEqual(SERVICES);
      await waitForAccessLines(1);
      const operation = `grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
      expect(accessLines).toMatchObject([{ operation, protocol: "grpc", code: "ok" }]);
    });

    test("returns all files that the messages of each service need", async () => {
      const { port } = await startTestServer();
      for (const service of SERVICES) {
        const [answer] = await ask(port, { case: "fileContainingSymbol", value: service });
        const file = filesOf(answer);
        const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: file.toReversed() }));
        expect(registry.getService(service)?.methods.length, service).toBeGreaterThan(0);
      }
    });

    test.each([
      ["hop.bridge.v1.BridgeService.GetQuote", "hop/bridge/v1/bridge.proto"],
      ["hop.bridge.v1.GetQuoteRequest", "hop/bridge/v1/bridge.proto"],
      ["hop.bridge.v1.GetQuoteRequest.rpc_url", "hop/bridge/v1/bridge.proto"],
      ["hop.bridge.v1.GetTransferStatusResponse.State", "hop/bridge/v1/bridge.proto"],
      ["hop.bridge.v1.GetTransferStatusResponse.BONDED", "hop/bridge/v1/bridge.proto"],
      ["google.api.http", "google/api/annotations.proto"],
      ["google.api.HttpRule.pattern", "google/api/http.proto"],
      ["google.protobuf.MethodOptions", "google/protobuf/descriptor.proto"],
      ["google.protobuf.FieldDescriptorProto.TYPE_BOOL", "google/protobuf/descriptor.proto"],
    ])("finds %s", async (symbol, name) => {
      const { port } = await startTestServer();
      const [answer] = await ask(port, { case: "fileContainingSymbol", value: symbol });
      expect(filesOf(answer)[0]?.name).toBe(name);
    });

    test("finds files by name and extensions by number, and answers requests in order", async () => {
      const { port } = await startTestServer();
      const http = { containingType: "google.protobuf.MethodOptions", extensionNumber: 72295728 };
      const [byName, byExtension, numbers, noNumbers] = await ask(
        port,
        { case: "fileByFilename", value: "hop/bridge/v1/bridge.proto" },
        { case: "fileContainingExtension", value: create(ExtensionRequestSchema, http) },
        { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
        { case: "allExtensionNumbersOfType", value: "hop.bridge.v1.Route" },
      );
      expect(filesOf(byName).map(({ name }) => name)).toEqual([
        "hop/bridge/v1/bridge.proto",
        "google/api/annotations.proto",
        "hop/http/v1/event_stream.proto",
        "google/api/http.proto",
        "google/protobuf/descriptor.proto",
      ]);
      expect(filesOf(byExtension)[0]?.name).toBe("google/api/annotations.proto");
      expect(numbers).toMatchObject({
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: "google.protobuf.MethodOptions", extensionNumber: [72295728, 50814] },
      });
      expect(noNumbers).toMatchObject({ case: "allExtensionNumbersResponse", value: { extensionNumber: [] } });
    });

    test.each<[ServerReflectionRequest["messageRequest"], number]>([
      [{ case: "fileByFilename", value: "nope.proto" }, status.NOT_FOUND],
      [{ case: "fileContainingSymbol", value: "constructor" }, status.NOT_FOUND],
      [{ case: "fileContainingExtension", value: create(ExtensionRequestSchema) }, status.NOT_FOUND],
      [{ case: "allExtensionNumbersOfType", value: "nope" }, status.NOT_FOUND],
      [{ case: undefined }, status.INVALID_ARGUMENT],
    ])("returns an error response for %j", async (question, errorCode) => {
      const { port } = await startTestServer();
      const [first, second] = await ask(port, question, { case: "listServices", value: "" });
      expect(first).toMatchObject({ case: "errorResponse", value: { errorCode } });
      expect(second?.case).toBe("listServicesResponse");
    });

    test("returns host and request with the response", async () => {
      const { port } = await startTestServer();
      const stream = open(port);
      stream.end({ host: "h", messageRequest: { case: "listServices", value: "*" } });
      const [answer] = (await once(stream, "data")) as [ServerReflectionResponse];
      expect(answer).toMatchObject({
        validHost: "h",
        originalRequest: { host: "h", messageRequest: { case: "listServices", value: "*" } },
      });
    });

    test("ends any number of open streams when the server drains", async () => {
      const warnings: unknown[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on("warning", onWarning);
      const { port, server } = await startTestServer();
      const streams = Array.from({ length: 20 }, () => open(port));
      for (const stream of streams) stream.write({ messageRequest: { case: "listServices", value: "" } });
      await Promise.all(streams.map((stream) => once(stream, "data")));
      const ended = streams.map((stream) => once(stream.resume(), "end"));
      const start = performance.now();
      await server.close(600_000);
      await Promise.all(ended);
      expect(performance.now() - start).toBeLessThan(60_000);
      process.off("warning", onWarning);
      expect(warnings).toEqual([]);
    });

    test("requires HTTP/2", async () => {
      const { port } = await startTestServer();
      const headers = { "content-type": "application/grpc-web+proto" };
      const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
      const answer = await sendHttp1(port, path, { method: "POST", headers });
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, "invalid_argument"]);
    });
  });

  test("a malformed reflection request returns INVALID_ARGUMENT", async () => {
    const { port, internalErrors } = await startTestServer();
    const stream = newClient(port).makeBidiStreamRequest(
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      new Metadata(),
    );
    stream.write(Buffer.from([255, 255]));
    stream.resume();
    const [error] = await once(stream, "error");
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(internalErrors).toEqual([]);
  });
});
