import { once } from "node:events";
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
import { type ClientDuplexStream, type ClientReadableStream, Metadata, status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
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
import { envelope, openHttp2, post, postJson, sendHttp1, sendHttp2On } from "../support/raw-client.js";
import { describeOnBothPaths, startTestServer } from "../support/test-server.js";

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
const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";

describeOnBothPaths(() => {
  describe("health checking", () => {
    const check = (port: number, service: string) => {
      const request = create(HealthCheckRequestSchema, { service });
      const client = createGrpcClient(port);
      return callUnaryGrpc(client, CHECK, HealthCheckRequestSchema, HealthCheckResponseSchema, request);
    };
    const watch = (port: number, service: string): ClientReadableStream<{ status: Serving }> =>
      createGrpcClient(port).makeServerStreamRequest(
        WATCH,
        serialize(HealthCheckRequestSchema),
        (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
        { service },
        new Metadata(),
      );

    test.each(["", ...SERVICES])("reports SERVING for %j", async (service) => {
      const { port } = await startTestServer();
      expect((await check(port, service)).message?.status).toBe(Serving.SERVING);
    });

    test("returns NOT_FOUND for an unknown service", async () => {
      const { port, internalErrors, logged } = await startTestServer();
      const { error } = await check(port, "hop.bridge.v1.Nope");
      expect(error?.code).toBe(status.NOT_FOUND);
      const line = { operation: "grpc.health.v1.Health/Check", protocol: "grpc", code: "not_found" };
      expect(await logged(1)).toMatchObject([line]);
      expect(internalErrors).toEqual([]);
    });

    test("is served over Connect too", async () => {
      const { port } = await startTestServer();
      const known = await sendHttp1(port, CHECK, postJson("{}"));
      expect(known).toMatchObject({ status: 200, body: '{"status":"SERVING"}' });
      const unknown = await sendHttp1(port, CHECK, postJson('{"service":"x"}'));
      expect(unknown).toMatchObject({ status: 404, body: '{"code":"not_found","message":"unknown service"}' });
    });

    test("Watch ends when the server drains, without delaying the shutdown", async () => {
      const { port, server, accessLines } = await startTestServer();
      const stream = watch(port, "hop.bridge.v1.BridgeService");
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
      const answer = sendHttp1(port, WATCH, post("application/connect+json", envelope(Buffer.from("{}"))));
      await expect.poll(() => server.getLoad().streamingCalls).toBe(1);
      await sleep(400);
      await server.close(600_000);
      expect((await answer).body).toMatch(/"SERVING".*"NOT_SERVING"/s);
    });

    test("Watch reports SERVICE_UNKNOWN for an unknown service", async () => {
      const { port, logged } = await startTestServer();
      const stream = watch(port, "nope");
      stream.on("error", () => {});
      const [answer] = await once(stream, "data");
      expect(answer.status).toBe(Serving.SERVICE_UNKNOWN);
      stream.cancel();
      expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
    });

    test("reports NOT_SERVING as soon as the server drains", async () => {
      const { port, server } = await startTestServer();
      const session = openHttp2(port);
      const before = await sendHttp2On(session, CHECK, postJson("{}"));
      const closing = server.close(5000);
      const after = await sendHttp2On(session, CHECK, postJson("{}"));
      expect([before.body, after.body]).toEqual(['{"status":"SERVING"}', '{"status":"NOT_SERVING"}']);
      await closing;
    });
  });

  describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    type Question = ServerReflectionRequest["messageRequest"];

    // Both versions have the same messages on the wire.
    const open = (
      port: number,
    ): ClientDuplexStream<MessageInitShape<typeof ServerReflectionRequestSchema>, ServerReflectionResponse> =>
      createGrpcClient(port).makeBidiStreamRequest(
        path,
        serialize(ServerReflectionRequestSchema),
        (bytes) => fromBinary(ServerReflectionResponseSchema, bytes),
        new Metadata(),
      );

    /** Asks a new server, and returns its answers. */
    async function ask(...questions: Question[]) {
      const { port, logged } = await startTestServer();
      const stream = open(port);
      const answers: ServerReflectionResponse[] = [];
      stream.on("data", (answer: ServerReflectionResponse) => answers.push(answer));
      for (const messageRequest of questions) stream.write({ host: "h", messageRequest });
      stream.end();
      await once(stream, "end");
      return { logged, answers, responses: answers.map(({ messageResponse }) => messageResponse) };
    }
    const filesOf = (answer: ServerReflectionResponse["messageResponse"] | undefined) =>
      answer?.case === "fileDescriptorResponse"
        ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        : [];

    test("lists the services, with host and request", async () => {
      const { answers, responses, logged } = await ask({ case: "listServices", value: "*" });
      const [answer] = responses;
      expect(answer?.case === "listServicesResponse" && answer.value.service.map(({ name }) => name)).toEqual(SERVICES);
      const originalRequest = { host: "h", messageRequest: { case: "listServices", value: "*" } };
      expect(answers).toMatchObject([{ validHost: "h", originalRequest }]);
      expect(await logged(1)).toMatchObject([{ operation: path.slice(1), protocol: "grpc", code: "ok" }]);
    });

    test.each(SERVICES)("returns all files that the messages of %s need", async (service) => {
      const { responses } = await ask({ case: "fileContainingSymbol", value: service });
      const file = filesOf(responses[0]).toReversed();
      const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
      expect(registry.getService(service)?.methods.length).toBeGreaterThan(0);
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
      const { responses } = await ask({ case: "fileContainingSymbol", value: symbol });
      expect(filesOf(responses[0])[0]?.name).toBe(name);
    });

    test("finds files by name and extensions by number, and answers requests in order", async () => {
      const http = { containingType: "google.protobuf.MethodOptions", extensionNumber: 72295728 };
      const { responses } = await ask(
        { case: "fileByFilename", value: "hop/bridge/v1/bridge.proto" },
        { case: "fileContainingExtension", value: create(ExtensionRequestSchema, http) },
        { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
        { case: "allExtensionNumbersOfType", value: "hop.bridge.v1.Route" },
      );
      const [byName, byExtension, numbers, noNumbers] = responses;
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

    test.each<[Question, number]>([
      [{ case: "fileByFilename", value: "nope.proto" }, status.NOT_FOUND],
      [{ case: "fileContainingSymbol", value: "constructor" }, status.NOT_FOUND],
      [{ case: "fileContainingExtension", value: create(ExtensionRequestSchema) }, status.NOT_FOUND],
      [{ case: "allExtensionNumbersOfType", value: "nope" }, status.NOT_FOUND],
      [{ case: undefined }, status.INVALID_ARGUMENT],
    ])("returns an error response for %j", async (question, errorCode) => {
      const { responses } = await ask(question, { case: "listServices", value: "" });
      expect(responses[0]).toMatchObject({ case: "errorResponse", value: { errorCode } });
      expect(responses[1]?.case).toBe("listServicesResponse");
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
      const answer = await sendHttp1(port, path, post("application/grpc-web+proto"));
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, "invalid_argument"]);
    });
  });

  test("a malformed reflection request returns INVALID_ARGUMENT", async () => {
    const { port, internalErrors } = await startTestServer();
    const stream = createGrpcClient(port).makeBidiStreamRequest(
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
