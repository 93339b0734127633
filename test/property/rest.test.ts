import { create, type DescField, type DescMessage, equals, type Message, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BatchGetQuotesRequestSchema,
  file_hop_bridge_v1_bridge,
  WatchTransfersRequestSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../src/errors.js";
import { createQueryParser } from "../../src/http/rest/query-parser.js";
import { getTestMessage } from "../unit/http/support/test-contract.js";

// What a query can express: an empty text is no value, and numbers that are not finite cannot be written. `__proto__` as a
// map key has a test of its own, since `create` drops it.

type Value = string | number | boolean;

function values({ name, scalar }: DescField): fc.Arbitrary<Value> {
  switch (scalar) {
    case ScalarType.STRING:
      return fc.string({ unit: "binary", minLength: 1 });
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.DOUBLE:
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case ScalarType.UINT32:
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    default:
      throw new Error(`${name} cannot stand in a query`);
  }
}

/** The value of a field in a message, with the query pairs that express it. */
interface Said {
  readonly value: unknown;
  readonly pairs: readonly (readonly [suffix: string, text: string])[];
}

function said(field: DescField): fc.Arbitrary<Said> {
  switch (field.fieldKind) {
    case "list":
      return fc.array(values(field), { maxLength: 4 }).map((items) => ({
        value: items,
        pairs: items.map((item) => ["", toText(item)] as const),
      }));
    case "map": {
      const keys = fc.string({ unit: "binary" }).filter((key) => key !== "__proto__");
      return fc.dictionary(keys, values(field), { maxKeys: 4 }).map((entries) => ({
        value: entries,
        pairs: Object.entries(entries).map(([key, item]) => [`[${key}]`, toText(item)] as const),
      }));
    }
    default:
      return values(field).map((value) => ({ value, pairs: [["", toText(value)] as const] }));
  }
}

function toText(value: Value): string {
  return typeof value === "number" ? plainDecimal(value) : String(value);
}

/** Returns a double in decimal digits without an exponent, as precise as its shortest form. */
function plainDecimal(value: number): string {
  const [mantissa = "", exponent] = (Object.is(value, -0) ? "-0" : String(value)).split("e");
  if (exponent === undefined) return mantissa;
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const shift = Number(exponent);
  if (shift > 0) return `${sign}${whole}${fraction.padEnd(shift, "0")}`;
  return `${sign}0.${"0".repeat(-shift - whole.length)}${whole}${fraction}`;
}

/** The encodings of a text in a query: any character may be percent-encoded, and a space may be a plus. */
function encoded(text: string): fc.Arbitrary<string> {
  return fc.boolean().map((all) => {
    if (all) return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
    return encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%5B", "[").replaceAll("%5D", "]");
  });
}

function requests(schema: DescMessage): fc.Arbitrary<{ message: Message; query: string }> {
  const fields = schema.fields.filter(({ message }) => message === undefined);
  return fc.tuple(...fields.map((field) => fc.option(said(field), { nil: undefined }))).chain((chosen) => {
    const init: Record<string, unknown> = {};
    const parameters: fc.Arbitrary<string>[] = [];
    fields.forEach((field, index) => {
      const some = chosen[index];
      if (some === undefined) return;
      init[field.localName] = some.value;
      const parameter = fc
        .constantFrom(field.jsonName, field.name)
        .chain((name) =>
          fc
            .tuple(
              ...some.pairs.map(([suffix, text]) =>
                fc.tuple(encoded(`${name}${suffix}`), encoded(text)).map((pair) => pair.join("=")),
              ),
            )
            .map((pairs) => pairs.join("&")),
        );
      parameters.push(parameter);
    });
    return fc
      .tuple(...parameters)
      .chain((written) => fc.shuffledSubarray(written, { minLength: written.length }))
      .map((written) => ({ message: create(schema, init), query: written.join("&") }));
  });
}

const requestSchemas = file_hop_bridge_v1_bridge.messages.filter(({ name }) => name.endsWith("Request"));
const schemas = [...requestSchemas, getTestMessage("Plain")];

describe.each(schemas.map((schema) => [schema.typeName, schema] as const))("%s", (_, schema) => {
  const bind = createQueryParser(schema);
  test("message -> query -> message is the identity", () => {
    const property = fc.property(requests(schema), ({ message, query }) => {
      expect(equals(schema, bind(query), message), query).toBe(true);
    });
    fc.assert(property, { numRuns: 300 });
  });
});

describe("any query of repeated parameters", () => {
  const pieces = [
    "transferId",
    "transfer_id",
    "transferHash",
    "resumeToken",
    "account",
    "requests",
    "toChain",
    "amount",
  ];
  const names = fc.oneof(fc.constantFrom(...pieces, "transferId[]", "transferId[0]", ""), fc.string({ maxLength: 4 }));
  const text = fc.oneof(fc.constantFrom("", "a", "%61", "%", "+", "é", "x".repeat(500)), fc.string({ maxLength: 4 }));
  const queries = fc
    .array(fc.tuple(names, fc.constantFrom("=", "=", "=", ""), text), { maxLength: 60 })
    .map((pairs) => pairs.map((pair) => pair.join("")).join("&"));
  const outcome = (bind: (query: string) => Message, query: string) => {
    try {
      return bind(query);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return { reason: error.reason, field: error.field };
    }
  };

  test.each([WatchTransfersRequestSchema, BatchGetQuotesRequestSchema])(
    "is bound or refused, equally by the fast path and without it: $name",
    (schema) => {
      const [fast, general] = [createQueryParser(schema), createQueryParser(schema, { fastPath: false })];
      const property = fc.property(queries, (query) => {
        const bound = outcome(fast, query);
        expect(bound).toEqual(outcome(general, query));
        if ("reason" in bound) expect(bound.reason).toMatch(/^(INVALID|UNKNOWN)_PARAMETER$/);
        else
          for (const field of schema.fields)
            if (field.message !== undefined) expect(bound).toMatchObject({ [field.localName]: [] });
      });
      fc.assert(property, { numRuns: 500 });
    },
  );

  test("keeps every value that is not empty, in order", () => {
    const bind = createQueryParser(WatchTransfersRequestSchema);
    const property = fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 30 }), (values) => {
      const query = values.map((value) => `transferId=${encodeURIComponent(value)}`).join("&");
      const expected = values.filter((value) => value !== "");
      expect(bind(query)).toMatchObject({ transferId: expected });
    });
    fc.assert(property, { numRuns: 300 });
  });
});
