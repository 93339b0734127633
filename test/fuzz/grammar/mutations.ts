import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Fields, Method } from "./methods.js";
import { text } from "./values.js";

function toPairs(fields: Fields): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]) =>
    typeof value === "object"
      ? Object.entries(value).map(
          ([key, item]) => [Array.isArray(value) ? name : `${name}[${key}]`, item] as [string, string],
        )
      : [[name, String(value)] as [string, string]],
  );
}

export interface Mutation {
  readonly kind: "value" | "name" | "double" | "drop" | "add" | "snake" | "path";
  readonly at: number;
  readonly text: string;
  readonly name: string;
}

const names = fc.constantFrom(
  ...["amount", "token", "fromChain", "from_chain", "toChain", "slippage", "transferId", "transferHash", "network"],
  ...["rpcUrl", "rpcUrl[", "rpcUrl[]", "rpcUrl[__proto__]", "rpcUrl[constructor]", "rpcUrl[optimism", "rpcUrl[a][b]"],
  ...["view", "receiveAmount", "receive_amount"],
  ...["rpc_url[optimism]", "rpcUrl%5Boptimism%5D", "refresh", "__proto__", "constructor", "toString", "", "amount\0"],
);
export const mutations: fc.Arbitrary<readonly Mutation[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  {
    weight: 5,
    arbitrary: fc.array(
      fc.record({
        kind: fc.constantFrom("value", "value", "value", "name", "double", "drop", "add", "snake", "path"),
        at: fc.nat(20),
        text,
        name: fc.oneof({ weight: 4, arbitrary: names }, { weight: 1, arbitrary: text }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
);

export function applyMutations(
  path: string,
  fields: Fields,
  changes: readonly Mutation[],
): { path: string; pairs: [string, string][] } {
  const pairs = toPairs(fields);
  let changedPath = path;
  for (const { kind, at, text, name } of changes) {
    const index = at % Math.max(pairs.length, 1);
    const pair = pairs[index];
    if (kind === "path") changedPath = `${path}${text.replace(/[\s?#]/g, "") || "/"}`;
    else if (pair === undefined || kind === "add") pairs.push([name, text]);
    else if (kind === "value") pair[1] = text;
    else if (kind === "name") pair[0] = name;
    else if (kind === "double") pairs.push([...pair]);
    else if (kind === "snake") pair[0] = pair[0].replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    else pairs.splice(index, 1);
  }
  return { path: changedPath, pairs };
}

/** Prints the fields as JSON, with mutations. */
function printJson(fields: Fields, changes: readonly Mutation[], value: unknown): string {
  const members: [string, unknown][] = Object.entries(fields);
  for (const { kind, at, text, name } of changes) {
    const member = members[at % Math.max(members.length, 1)];
    if (member === undefined || kind === "add") members.push([name, at % 2 === 0 ? text : value]);
    else if (kind === "value") member[1] = at % 2 === 0 ? text : value;
    else if (kind === "name") member[0] = name;
    else if (kind === "double") members.push([...member]);
    else if (kind === "drop") members.splice(at % members.length, 1);
  }
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member) ?? "null"}`).join(",")}}`;
}

/** How the bytes of a message are cut, changed and extended. */
interface ByteDamage {
  readonly cut: number;
  readonly at: number;
  readonly byte: number;
  readonly more: Uint8Array;
}
const damages = fc.option(
  fc.record({ cut: fc.nat(8), at: fc.nat(200), byte: fc.nat(255), more: fc.uint8Array({ maxLength: 12 }) }),
  { nil: undefined, freq: 2 },
);
function damageBytes(bytes: Uint8Array, damage: ByteDamage | undefined): Buffer {
  if (damage === undefined) return Buffer.from(bytes);
  const copy = Buffer.from(bytes.subarray(0, Math.max(0, bytes.length - damage.cut)));
  if (copy.length > 0) copy[damage.at % copy.length] = damage.byte;
  return Buffer.concat([copy, damage.more]);
}
/** A long run of one byte in a few messages: up to more than the body limit. */
const padding = fc.oneof(
  { weight: 400, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(64 * 1024, 66 * 1024, 200_000) },
);

interface Message {
  readonly json: Buffer;
  readonly binary: Buffer;
}

/** Tags of field 8, `requests` of a batch, and of the start and the end of a group in it. */
const LIST_TAG = (8 << 3) | 2;
const GROUP_START_TAG = (8 << 3) | 3;
const GROUP_END_TAG = (8 << 3) | 4;

/** Messages that hold too much in few bytes, or just not: many members of a list, or lists inside each other. */
const excessiveMessages: fc.Arbitrary<Message> = fc
  .tuple(fc.boolean(), fc.constantFrom(15, 16, 17, 99, 100, 101, 2_000, 2_001, 20_000))
  .map(([isNested, count]) =>
    isNested
      ? {
          json: Buffer.from(`{"requests":${"[".repeat(count)}${"]".repeat(count)}}`),
          binary: Buffer.concat([Buffer.alloc(count, GROUP_START_TAG), Buffer.alloc(count, GROUP_END_TAG)]),
        }
      : {
          json: Buffer.from(`{"requests":[{}${",{}".repeat(count - 1)}]}`),
          binary: Buffer.alloc(2 * count, Buffer.from([LIST_TAG, 0])),
        },
  );
export function messages(method: Method): fc.Arbitrary<Message> {
  return fc.oneof({ weight: 40, arbitrary: typicalMessages(method) }, { weight: 1, arbitrary: excessiveMessages });
}

function typicalMessages(method: Method): fc.Arbitrary<Message> {
  return fc
    .tuple(method.fields, mutations, fc.jsonValue({ maxDepth: 3 }), damages, padding)
    .map(([fields, changes, value, damage, pad]) => {
      const message = create(method.schema, fields as MessageInitShape<DescMessage>);
      const space = " ".repeat(pad);
      return {
        json: damageBytes(
          Buffer.from(`${printJson(fields, changes, value)}${space}`),
          changes.length > 1 ? damage : undefined,
        ),
        binary: Buffer.concat([damageBytes(toBinary(method.schema, message), damage), Buffer.from(space)]),
      };
    });
}
