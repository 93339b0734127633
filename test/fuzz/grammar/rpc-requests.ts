import { gzipSync } from "node:zlib";
import fc from "fast-check";
import type { RawHttpRequest } from "../../support/service/http-connections.js";
import { type Header, headerLists, toRequest } from "./http-request.js";
import { type Fields, type Method, SERVICE_PATH } from "./methods.js";
import { applyMutations, messages, mutations } from "./mutations.js";
import { otherPaths } from "./rest-requests.js";
import { wellFormed, withOdds } from "./values.js";

const jsonTypes = fc.constantFrom(
  "application/json",
  "application/json",
  "application/json; charset=utf-8",
  "Application/JSON",
  "application/json; charset=x",
  "text/json",
  "",
);
const protoTypes = fc.constantFrom(
  "application/proto",
  "application/proto",
  "application/x-protobuf",
  "application/protobuf",
);
const contentEncodings = fc.constantFrom("gzip", "identity", "br", "deflate", "gzip, gzip", "x");

export function connectPostRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(
      messages(method),
      fc.boolean(),
      jsonTypes,
      protoTypes,
      headerLists,
      fc.boolean(),
      withOdds(12),
      contentEncodings,
      withOdds(2),
    )
    .map(([message, isBinary, jsonType, protoType, headers, isHttp2, isEncoded, encoding, isPacked]) => {
      const body = isBinary ? message.binary : message.json;
      const type = isBinary ? protoType : jsonType;
      const all = [
        ["content-type", type] as const,
        ...(isEncoded ? [["content-encoding", encoding] as const] : []),
        ...headers,
      ];
      return toRequest(
        isHttp2,
        "POST",
        `${SERVICE_PATH}/${method.procedure}`,
        all,
        isEncoded && isPacked ? gzipSync(body) : body,
      );
    });
}

export function connectGetRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  return fc
    .tuple(messages(method), fc.nat(6), fc.boolean(), headerLists, mutations)
    .map(([{ json, binary }, form, isHttp2, headers, changes]) => {
      const short = (bytes: Buffer): Buffer => bytes.subarray(0, 3_000);
      const params: Fields =
        form % 3 === 0
          ? { connect: "v1", encoding: "json", message: short(json).toString("latin1") }
          : {
              connect: "v1",
              base64: "1",
              encoding: form % 3 === 1 ? "json" : "proto",
              message: short(form % 3 === 1 ? json : binary).toString("base64url"),
            };
      const { path, pairs } = applyMutations(`${SERVICE_PATH}/${method.procedure}`, params, form < 4 ? [] : changes);
      const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(wellFormed(value))}`).join("&");
      return toRequest(isHttp2, "GET", `${path}?${query}`, headers);
    });
}

/** The flags and the length before a message, which may be wrong. */
const envelopes = fc.record({
  flags: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(1, 2, 3, 0x80, 0xff) },
  ),
  lengthError: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(-3, -1, 1, 5, 70_000, 2 ** 31) },
  ),
  count: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(0, 2, 5) }),
  isPacked: withOdds(10),
});
function envelopeMessages(
  message: Buffer,
  { flags, lengthError, count, isPacked }: { flags: number; lengthError: number; count: number; isPacked: boolean },
): Buffer {
  const body = isPacked ? gzipSync(message) : message;
  const head = Buffer.alloc(5);
  head[0] = isPacked ? flags | 1 : flags;
  head.writeUInt32BE(Math.max(0, Math.min(body.length + lengthError, 2 ** 32 - 1)), 1);
  return Buffer.concat(Array.from({ length: count }, () => [head, body]).flat());
}

/** gRPC, and gRPC-Web, whose requests look the same. */
export function grpcRequests(method: Method): fc.Arbitrary<RawHttpRequest> {
  const types = fc.constantFrom(
    "application/grpc",
    "application/grpc",
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc-web+proto",
    "application/grpc-web",
    "application/grpc-web+json",
    "application/grpc-web-text",
    "application/grpcx",
  );
  return fc
    .tuple(
      messages(method),
      envelopes,
      types,
      headerLists,
      withOdds(20),
      otherPaths,
      fc.boolean(),
      withOdds(10),
      contentEncodings,
    )
    .map(([{ json, binary }, envelope, type, headers, isOther, other, isHttp2, isEncoded, encoding]) => {
      const body = envelopeMessages(type.endsWith("json") ? json : binary, envelope);
      const hasEncodingHeader = isEncoded || (envelope.isPacked && encoding !== "x");
      const all: Header[] = [
        ["content-type", type],
        ["te", "trailers"],
      ];
      if (hasEncodingHeader) all.push(["grpc-encoding", isEncoded ? encoding : "gzip"]);
      const isOverHttp2 = isHttp2 || !type.includes("web");
      return toRequest(
        isOverHttp2,
        "POST",
        isOther ? other : `${SERVICE_PATH}/${method.procedure}`,
        [...all, ...headers],
        body,
      );
    });
}
