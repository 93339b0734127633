import {
  type DescField,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { http as httpOption } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { event_stream as eventStreamOption } from "../../../gen/hop/http/v1/event_stream_pb.js";

// How the contract says that GET serves a method. Generators of documents read it too.

/** A path that serves a method by GET. */
export interface GetRoute {
  readonly path: string;
  readonly method: DescMethod;
  /** Name of the response field that is the whole body; empty for the complete response. */
  readonly responseBody: string;
}

/** A path without variables. It may end in a custom method, such as `:watch`. */
const LITERAL_PATH = /^(?:\/[A-Za-z0-9._~-]+)+(?::[A-Za-z][A-Za-z0-9]*)?$/;

/**
 * Reads the GET routes of a service from its google.api.http annotations. Throws for an annotation that is not
 * supported, so that a mistake in the contract shows at the start and not at the first request.
 */
export function readGetRoutes(service: DescService): GetRoute[] {
  return service.methods.flatMap((method) => {
    if (!hasOption(method, httpOption)) return [];
    const rule = getOption(method, httpOption);
    return [rule, ...rule.additionalBindings].map((binding) => toGetRoute(method, binding));
  });
}

function toGetRoute(method: DescMethod, { pattern, body, responseBody }: HttpRule): GetRoute {
  const createError = (problem: string) =>
    new Error(`google.api.http of ${method.parent.typeName}/${method.name}: ${problem}`);
  if (method.methodKind !== "unary" && method.methodKind !== "server_streaming") {
    throw createError("streams of requests cannot be served by GET");
  }
  if (pattern.case !== "get" || body !== "") throw createError("only `get` without a body is supported");
  if (!LITERAL_PATH.test(pattern.value)) throw createError(`the path ${pattern.value} is not a literal`);
  return { path: pattern.value, method, responseBody };
}

/** What the fields of a server-streaming method are in Server-Sent Events, and in the query that asks for them. */
export interface EventStreamFields {
  /** Response field that is the id of an event. */
  readonly id: DescField;
  /** The oneof of the response that is the event. */
  readonly oneofName: string;
  /** Its members: messages. */
  readonly members: readonly DescField[];
  /** Request field that Last-Event-ID sets. */
  readonly lastEventId: DescField;
  /** How many items all lists of a query may have together; 0: no limit. */
  readonly maxListItems: number;
}

/** Reads the annotation of a server-streaming method. Throws if it is missing or names fields that do not fit. */
export function readEventStreamFields(method: DescMethod): EventStreamFields {
  const { input, output, parent, name } = method;
  const createError = (problem: string) =>
    new Error(`hop.http.v1.event_stream of ${parent.typeName}/${name}: ${problem}`);
  if (!hasOption(method, eventStreamOption)) throw createError("a stream needs it to be served by GET");
  const option = getOption(method, eventStreamOption);
  const findText = ({ fields, typeName }: typeof input, fieldName: string): DescField => {
    const found = fields.find((field) => field.name === fieldName);
    const isText = found?.fieldKind === "scalar" && found.scalar === ScalarType.STRING && found.oneof === undefined;
    if (found === undefined || !isText) throw createError(`${typeName}.${fieldName} is not a string field`);
    return found;
  };
  const oneof = output.oneofs.find((candidate) => candidate.name === option.event);
  if (oneof === undefined) throw createError(`${output.typeName} has no oneof ${option.event}`);
  const scalar = oneof.fields.find(({ message }) => message === undefined);
  if (scalar !== undefined) throw createError(`${output.typeName}.${scalar.name} is not a message`);
  return {
    id: findText(output, option.id),
    oneofName: oneof.localName,
    members: oneof.fields,
    lastEventId: findText(input, option.lastEventId),
    maxListItems: option.maxListItems,
  };
}
