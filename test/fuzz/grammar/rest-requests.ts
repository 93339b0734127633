import fc from "fast-check";
import type { RawHttpRequest } from "../../support/service/http-connections.js";
import { encodeInvisible, headerLists, toRequest } from "./http-request.js";
import { type Method, SERVICE_PATH } from "./methods.js";
import { applyMutations, mutations } from "./mutations.js";
import { text, wellFormed } from "./values.js";

const percentAll = (value: string): string =>
  [...Buffer.from(value)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
const encodings: readonly ((value: string) => string)[] = [
  (value) => encodeURIComponent(wellFormed(value)),
  (value) => encodeURIComponent(wellFormed(value)),
  percentAll,
  (value) => encodeURIComponent(encodeURIComponent(wellFormed(value))),
  // Unencoded, except for characters that would end the request line.
  (value) =>
    Buffer.from(value)
      .toString("latin1")
      .replace(/[\s\0]/g, "+"),
];

export function getRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(method.fields, mutations, fc.nat(20), fc.boolean(), headerLists, fc.nat(30))
    .map(([fields, changes, encoding, isHttp2, headers, verb]) => {
      const { path, pairs } = applyMutations(method.path, fields, changes);
      const encode = encodings[encoding % encodings.length] ?? encodeURIComponent;
      // Brackets occur literally and encoded.
      const encodeName =
        encoding % 2 === 0 ? encode : (name: string) => encodeInvisible(name.replace(/[&=#+%]/g, encodeURIComponent));
      const query = pairs.map(([name, value]) => `${encodeName(name)}=${encode(value)}`).join("&");
      const verbs = ["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "PATCH", "PROPFIND"];
      return toRequest(isHttp2, verbs[verb] ?? "GET", query === "" ? path : `${path}?${query}`, headers);
    });
}

export const otherPaths = fc.constantFrom(
  "/grpc.health.v1.Health/Check",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
  `${SERVICE_PATH}/Nope`,
  "/",
  "",
);

/** Any HTTP requests. */
export const arbitraryHttpRequests: fc.Arbitrary<RawHttpRequest> = fc
  .tuple(
    fc.boolean(),
    fc.constantFrom(
      "GET",
      "POST",
      "PUT",
      "HEAD",
      "OPTIONS",
      "DELETE",
      "TRACE",
      "PATCH",
      "LINK",
      "M-SEARCH",
      "QUERY",
      "get",
    ),
    fc.oneof(
      otherPaths,
      text.map((some) => `/${some}`),
      fc.constantFrom(
        "*",
        "//",
        "/v1/quote/",
        "//v1/quote",
        "http://x/v1/quote",
        "/v1/quote#x",
        `/${"x".repeat(9_000)}`,
        `/v1/quote?${"a=1&".repeat(2_500)}`,
      ),
    ),
    fc.array(fc.tuple(fc.constantFrom("content-type", "x-request-id", "accept", "x".repeat(2_000)), text), {
      maxLength: 4,
    }),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
    ),
  )
  .map(([isHttp2, method, target, headers, body]) =>
    toRequest(
      isHttp2,
      method,
      target,
      headers.map(([name, value]) => [name, Buffer.from(value).toString("latin1")]),
      body && Buffer.from(body),
    ),
  );
