import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http as httpOption } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";

/** A path under which a method answers GET. */
export interface GetRoute {
  readonly path: string;
  readonly method: DescMethod;
  /** Name of the response field that alone is the answer; empty: the whole response. */
  readonly responseBody: string;
}

const LITERAL_PATH = /^(?:\/[A-Za-z0-9._~-]+)+$/;

/**
 * The GET routes that a service's google.api.http annotations name. Throws for an annotation that asks for what is not
 * served here, so that a mistake in the contract shows at the start and not at the first request.
 */
export function readGetRoutes(service: DescService): GetRoute[] {
  return service.methods.flatMap((method) => {
    if (!hasOption(method, httpOption)) return [];
    const rule = getOption(method, httpOption);
    return [rule, ...rule.additionalBindings].map((each) => toGetRoute(method, each));
  });
}

function toGetRoute(method: DescMethod, { pattern, body, responseBody }: HttpRule): GetRoute {
  const refuse = (why: string) => new Error(`google.api.http of ${method.parent.typeName}/${method.name}: ${why}`);
  if (method.methodKind !== "unary") throw refuse("a stream cannot answer GET");
  if (pattern.case !== "get" || body !== "") throw refuse("only get without a body is served");
  if (!LITERAL_PATH.test(pattern.value)) throw refuse(`the path ${pattern.value} is not plain`);
  return { path: pattern.value, method, responseBody };
}
