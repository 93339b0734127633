import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type CallOptions, Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { closeAfterTest } from "../../../support/close-after-test.js";

/** Result of a unary gRPC call: the message or the error, and the response headers. */
export interface GrpcOutcome<T> {
  readonly message: T | undefined;
  readonly error: ServiceError | undefined;
  readonly headers: Metadata;
}

/** Creates a client of grpc-js, which shares no code with Connect. It is closed after the test. */
export function createGrpcClient(port: number): Client {
  return closeAfterTest(new Client(`127.0.0.1:${port}`, credentials.createInsecure()));
}

/** Makes one unary call. */
export function callUnaryGrpc<I extends DescMessage, O extends DescMessage>(
  client: Client,
  path: string,
  input: I,
  output: O,
  message: MessageShape<I> | Buffer,
  { headers = {}, ...options }: CallOptions & { headers?: Record<string, string> } = {},
): Promise<GrpcOutcome<MessageShape<O>>> {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return new Promise((resolve) => {
    let responseHeaders = new Metadata();
    const call = client.makeUnaryRequest(
      path,
      (value: MessageShape<I> | Buffer) => (Buffer.isBuffer(value) ? value : Buffer.from(toBinary(input, value))),
      (bytes) => fromBinary(output, bytes),
      message,
      metadata,
      options,
      (error, response) => resolve({ message: response, error: error ?? undefined, headers: responseHeaders }),
    );
    call.on("metadata", (received: Metadata) => {
      responseHeaders = received;
    });
  });
}

/** Asks for one quote. */
export const callQuote = (
  client: Client,
  message: MessageShape<typeof GetQuoteRequestSchema> | Buffer,
  options?: Parameters<typeof callUnaryGrpc>[5],
) => {
  const path = "/hop.bridge.v1.BridgeService/GetQuote";
  return callUnaryGrpc(client, path, GetQuoteRequestSchema, GetQuoteResponseSchema, message, options);
};

type ConnectOptions = Parameters<typeof createConnectTransport>[0];

/** Returns what creates transports of Connect over a version of HTTP. */
export const connectOver =
  (
    httpVersion: "1.1" | "2",
    more: Pick<ConnectOptions, "useBinaryFormat" | "useHttpGet" | "sendCompression" | "compressMinBytes"> = {},
  ) =>
  (options: Pick<ConnectOptions, "baseUrl" | "interceptors">) => {
    const all = { ...options, ...more };
    return httpVersion === "1.1"
      ? createConnectTransport({ ...all, httpVersion })
      : createConnectTransport({ ...all, httpVersion });
  };
