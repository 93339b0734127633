import type { DescMethodUnary, DescService, Message, MessageShape } from "@bufbuild/protobuf";
import type { Operation } from "../../operations/operation.js";

/** An operation whose messages only its descriptor knows: what comes in has passed that descriptor's parser. */
export type AnyOperation = Operation<never, Message>;

/** A service with what serves it: one operation for each of its methods, by the method's localName. */
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
 * Puts operations to a service's methods, checked by the compiler.
 *
 * @example
 * mount(BridgeService, { getQuote, getTransferStatus, listAvailableRoutes })
 */
export function mountService<S extends DescService>(service: S, operations: Operations<S>): MountedService {
  return { service, operations: operations as MountedService["operations"] };
}

/** The operation of a method. Throws where the service was mounted without it. */
export function getOperation({ service, operations }: MountedService, localName: string): AnyOperation {
  const operation = operations[localName];
  if (operation === undefined) throw new Error(`${service.typeName} is mounted without ${localName}`);
  return operation;
}

/** The same service, with something around each of its operations. */
export function decorateOperations(
  { service, operations }: MountedService,
  wrap: (operation: AnyOperation) => AnyOperation,
): MountedService {
  const wrapped = Object.entries(operations).map(([name, operation]) => [name, wrap(operation)] as const);
  return { service, operations: Object.fromEntries(wrapped) };
}
