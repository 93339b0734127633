import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Operation, StreamOperation } from "../../operations/operation.js";
import { RequestContext } from "./request-context.js";

/**
 * An operation whose message types only its descriptor knows. Its requests have passed the parser of the descriptor.
 */
export type AnyOperation = Operation<Message, Message>;

/** The same for a server-streaming operation. */
export type AnyStreamOperation = StreamOperation<Message, Message>;

/** A service and its operations: one for each method, by localName. */
export interface MountedService {
  readonly service: DescService;
  readonly operations: Readonly<Record<string, AnyOperation | AnyStreamOperation>>;
}

type Operations<S extends DescService> = {
  readonly [M in keyof S["method"]]: S["method"][M] extends DescMethodUnary<infer I, infer O>
    ? Operation<MessageShape<I>, MessageShape<O>>
    : S["method"][M] extends DescMethodServerStreaming<infer I, infer O>
      ? StreamOperation<MessageShape<I>, MessageShape<O>>
      : never;
};

/**
 * Assigns operations to the methods of a service, type-checked.
 *
 * @example
 * mountService(BridgeService, { getQuote, getTransferStatus, listAvailableRoutes })
 */
export function mountService<S extends DescService>(service: S, operations: Operations<S>): MountedService {
  return { service, operations: operations as MountedService["operations"] };
}

/** Returns the operation of a unary method. Throws if the service was mounted without it. */
export function getOperation(mounted: MountedService, localName: string): AnyOperation {
  return findOperation(mounted, localName) as AnyOperation;
}

/** Returns the operation of a server-streaming method. Throws if the service was mounted without it. */
export function getStreamOperation(mounted: MountedService, localName: string): AnyStreamOperation {
  return findOperation(mounted, localName) as AnyStreamOperation;
}

function findOperation({ service, operations }: MountedService, localName: string): AnyOperation | AnyStreamOperation {
  const operation = operations[localName];
  if (operation === undefined) throw new Error(`${service.typeName} is mounted without ${localName}`);
  return operation;
}

/** Returns the service with each of its operations in the trace of its call. */
export function traceOperations({ service, operations }: MountedService): MountedService {
  // Both kinds take their call context last.
  const traced = Object.entries(operations).map(([name, operation]) => [name, trace(operation as AnyStreamOperation)]);
  return { service, operations: Object.fromEntries(traced) };
}

function trace(operation: AnyStreamOperation): AnyStreamOperation {
  return (...args) => {
    // The call context is the request context itself.
    const context: unknown = args.at(-1);
    return context instanceof RequestContext ? context.runTraced(() => operation(...args)) : operation(...args);
  };
}
