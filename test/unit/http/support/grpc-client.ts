import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type CallOptions, Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";

/** Result of a unary gRPC call: the message or the error, and the response headers. */
export interface GrpcOutcome<T> {
  readonly message: T | undefined;
  readonly error: ServiceError | undefined;
  readonly headers: Metadata;
}

/** Creates a client of grpc-js, which shares no code with Connect. */
export function createGrpcClient(port: number): Client {
  return new Client(`127.0.0.1:${port}`, credentials.createInsecure());
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
