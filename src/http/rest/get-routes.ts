import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http as httpOption } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";

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
