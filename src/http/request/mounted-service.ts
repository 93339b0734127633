import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Operation, StreamOperation } from "../../operations/operation.js";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
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
  readonly operations: Readonly<Record<string, AnyOperation>>;
  /** Those of its server-streaming methods. Default: none. */
  readonly streamOperations?: Readonly<Record<string, AnyStreamOperation>>;
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
  const isStream = (localName: string) =>
    service.methods.some((method) => method.localName === localName && method.methodKind === "server_streaming");
  const entries = Object.entries<unknown>(operations);
  const pick = (streams: boolean) => Object.fromEntries(entries.filter(([name]) => isStream(name) === streams));
  return {
    service,
    operations: pick(false) as MountedService["operations"],
    streamOperations: pick(true) as Required<MountedService>["streamOperations"],
  };
}

/** Returns the operation of a unary method. Throws if the service was mounted without it. */
export function getOperation({ service, operations }: MountedService, localName: string): AnyOperation {
  return assertMounted(operations[localName], service, localName);
}

/** Returns the operation of a server-streaming method. Throws if the service was mounted without it. */
export function getStreamOperation(
  { service, streamOperations }: MountedService,
  localName: string,
): AnyStreamOperation {
  return assertMounted(streamOperations?.[localName], service, localName);
}

function assertMounted<T>(operation: T | undefined, { typeName }: DescService, localName: string): T {
  if (operation === undefined) throw new Error(`${typeName} is mounted without ${localName}`);
  return operation;
}

/** Returns the service with each of its operations in the trace of its call. */
export function traceOperations({ service, operations, streamOperations = {} }: MountedService): MountedService {
  return { service, operations: mapValues(operations, trace), streamOperations: mapValues(streamOperations, trace) };
}

function trace<Arguments extends readonly unknown[], Result>(
  operation: (...args: Arguments) => Result,
): (...args: Arguments) => Result {
  return (...args) => {
    // The call context of an operation, its last argument, is the request context itself.
    const context = args.at(-1);
    return context instanceof RequestContext ? context.runTraced(() => operation(...args)) : operation(...args);
  };
}

function mapValues<T>(record: Readonly<Record<string, T>>, map: (value: T) => T): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)] as const));
}

/** Receives the outcome of a call. */
export interface CallOutcome {
  succeed(message: Message): void;
  fail(error: unknown): void;
}

/**
 * Runs the operation of a call and passes on its outcome: synchronously if the operation is synchronous, otherwise when
 * it is the turn of its caller.
 */
export function invokeOperation(
  operation: AnyOperation,
  request: Message,
  { context, timeoutMs }: { readonly context: RequestContext; readonly timeoutMs: number | undefined },
  outcome: CallOutcome,
): void {
  let result: MaybePromise<Message>;
  try {
    result = operation(request, context.toCallContext(timeoutMs));
  } catch (error) {
    outcome.fail(error);
    return;
  }
  if (isPromise(result)) {
    void result.then(
      (message) => context.continueInTurn(() => outcome.succeed(message)),
      (error) => context.continueInTurn(() => outcome.fail(error)),
    );
  } else outcome.succeed(result);
}
