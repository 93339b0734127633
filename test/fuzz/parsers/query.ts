import assert from "node:assert/strict";
import { ScalarType } from "@bufbuild/protobuf";
import { file_hop_bridge_v1_bridge } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../src/errors.js";
import { createQueryParser } from "../../../src/http/rest/query-parser.js";
import { getTestMessage } from "../../unit/http/support/test-contract.js";
import { catchDeclared, createByteSource } from "./byte-source.js";

const requests = file_hop_bridge_v1_bridge.messages.filter(({ name }) => name.endsWith("Request"));
const binders = [...requests, getTestMessage("Plain")].map((schema) => ({
  schema,
  bindFast: createQueryParser(schema),
  bindSlowly: createQueryParser(schema, { fastPath: false }),
}));
const MAX_MESSAGE_LENGTH = 500;

/** Queries: the fast path and the general one agree, and a text is what the URL standard reads. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const binder = binders[source.takeByte() % binders.length] as (typeof binders)[number];
  const query = source.takeRest().toString("latin1");
  const fast = catchDeclared(() => binder.bindFast(query), ServiceError);
  const slow = catchDeclared(() => binder.bindSlowly(query), ServiceError);
  if ("error" in slow) {
    assert.ok("error" in fast, `the fast path accepts ${query}`);
    assert.deepEqual(describe(fast.error), describe(slow.error));
    assert.ok(["INVALID_PARAMETER", "UNKNOWN_PARAMETER"].includes(slow.error.reason));
    assert.match(slow.error.message, /^[\x20-\x7e]*$/);
    assert.ok(slow.error.message.length < MAX_MESSAGE_LENGTH);
    return;
  }
  assert.ok("value" in fast, `the fast path rejects ${query}`);
  assert.deepEqual(fast.value, slow.value);
  const expected = new URLSearchParams(query);
  for (const field of binder.schema.fields) {
    if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.oneof !== undefined) continue;
    const text = expected.get(field.jsonName) || expected.get(field.name) || "";
    assert.equal((slow.value as unknown as Record<string, unknown>)[field.localName] ?? "", text);
  }
}

function describe({ reason, field, message }: ServiceError): readonly unknown[] {
  return [reason, field, message];
}
