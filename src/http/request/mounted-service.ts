import type { DescMethodUnary, DescService, Message, MessageShape } from "@bufbuild/protobuf";
import type { Operation } from "../../operations/operation.js";

/**
 * An operation whose message types only its descriptor knows. Its requests have passed the parser of the descriptor.
 */
export type AnyOperation = Operation<never, Message>;

/** A service and its operations: one for each method, by localName. */
export interface MountedService {
  readonly service: DescService;
  readonly operations: Readonly<Record<string, AnyOperation>>;
}

type Operations<S extends DescService> = {
  readonly [M in keyof S["method"]]: S["method"][M] extends DescMethodUnary<infer I, infer O>
    ? Operation<MessageShape<I>, MessageShape<O>>
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

/** Returns the operation of a method. Throws if the service was mounted without it. */
export function getOperation({ service, operations }: MountedService, localName: string): AnyOperation {
  const operation = operations[localName];
  if (operation === undefined) throw new Error(`${service.typeName} is mounted without ${localName}`);
  return operation;
}

/** Returns the service with each of its operations wrapped. */
export function decorateOperations(
  { service, operations }: MountedService,
  wrap: (operation: AnyOperation) => AnyOperation,
): MountedService {
  const wrapped = Object.entries(operations).map(([name, operation]) => [name, wrap(operation)] as const);
  return { service, operations: Object.fromEntries(wrapped) };
}
