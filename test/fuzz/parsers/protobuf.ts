import assert from "node:assert/strict";
import { fromBinary, fromJsonString, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { file_hop_bridge_v1_bridge } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { createProtobufJsonPrinter } from "../../../src/http/codec/json-printer.js";
import { createFastPathBinaryReader } from "../../../src/http/codec/read-binary.js";
import { createBinaryWriter } from "../../../src/http/codec/write-binary.js";
import { parseEnveloped } from "../../../src/http/rpc/rpc-messages.js";
import { getTestMessage } from "../../unit/http/support/test-contract.js";
import { createByteSource } from "./byte-source.js";

const { messages } = file_hop_bridge_v1_bridge;
const codecs = [...messages, getTestMessage("Kinds"), getTestMessage("Nested")].map((schema) => ({
  schema,
  readBinary: createFastPathBinaryReader(schema),
  writeBinary: createBinaryWriter(schema),
  writeJson: createProtobufJsonPrinter(schema),
}));
type Codec = (typeof codecs)[number];

/** Messages in binary and in JSON: what the fast paths read and write is what the library reads and writes. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const codec = codecs[source.takeByte() % codecs.length] as Codec;
  const mode = source.takeByte();
  const bytes = source.takeRest();
  const isBinary = mode < 0x80;
  const message = isBinary ? checkBinary(codec, bytes) : attempt(() => readJson(codec, bytes));
  if (message !== undefined) checkWriters(codec, message);
  checkEnvelope(codec, bytes);
}

function checkBinary({ schema, readBinary }: Codec, bytes: Buffer): Message | undefined {
  const fast = readBinary(bytes);
  const read = attempt(() => fromBinary(schema, bytes));
  if (fast !== undefined) assert.deepEqual(toPlain(fast), toPlain(read));
  return read;
}

function readJson({ schema }: Codec, bytes: Buffer): Message {
  return fromJsonString(schema, bytes.toString(), { ignoreUnknownFields: true });
}

function checkWriters({ schema, writeBinary, writeJson }: Codec, message: Message): void {
  const HEADROOM = 5;
  assert.deepEqual(
    attempt(() => writeBinary(message, HEADROOM).subarray(HEADROOM).toString("hex")),
    attempt(() => Buffer.from(toBinary(schema, message)).toString("hex")),
  );
  assert.equal(
    attempt(() => writeJson(message)),
    attempt(() => toJsonString(schema, message)),
  );
}

/** The same bytes with a prefix that is right are read alike, and as they are only if they begin with such a prefix. */
function checkEnvelope({ readBinary }: Codec, bytes: Buffer): void {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  const parsed = parseEnveloped(Buffer.concat([prefix, bytes]), readBinary);
  assert.deepEqual(toPlain(parsed), toPlain(readBinary(bytes)));
  const isWhole = bytes.length >= 5 && bytes[0] === 0 && bytes.readUInt32BE(1) === bytes.length - 5;
  const bare = parseEnveloped(bytes, readBinary);
  if (!isWhole) assert.equal(bare, undefined);
}

/** Leaves out prototypes and fields without a value, in which the two differ. */
function toPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, toPlain(member)]));
}

/** Returns undefined if the function throws: the library does so for what is not valid. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
