import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State,
  GetTransferStatusResponseSchema,
  WatchTransfersRequestSchema,
  WatchTransfersResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { envelope, post, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { transferEvent, WATCH_GET_PATH, WATCH_PATH, type WatchOperation } from "../support/stream-contract.js";
import { startTestServer } from "../support/test-server.js";

// A state that many watch is encoded once for each form of the protocols; only what is around it differs from stream to stream.

const FIELDS = {
  ...{ transferId: "0xé", amount: "25", amountUsd: 1.5, timestamp: 1_700_000_000n, otherTransferIds: ["a"] },
  state: GetTransferStatusResponse_State.BONDED,
};
const BINARY = envelope(toBinary(WatchTransfersRequestSchema, create(WatchTransfersRequestSchema)));
const JSON_BODY = envelope(Buffer.from("{}"));

/** A state, and how often it was encoded. */
function createCountedState(): { readonly state: GetTransferStatusResponse; readonly count: () => number } {
  let reads = 0;
  const state = create(GetTransferStatusResponseSchema, FIELDS);
  Object.defineProperty(state, "transferId", {
    enumerable: true,
    get() {
      reads += 1;
      return FIELDS.transferId;
    },
  });
  return { state, count: () => reads };
}

/** Starts a server whose watches send one state, each with a token of its own. */
async function serve(state: GetTransferStatusResponse): Promise<number> {
  let streams = 0;
  const watch: WatchOperation = (_, stream) => {
    streams += 1;
    stream.send({ ...transferEvent(`token${streams}`, ""), event: { case: "transfer", value: state } });
    stream.end();
    return { onReady() {}, onDrain() {}, onEnd() {} };
  };
  return (await startTestServer({ watch })).port;
}

/** Reads the same watch over every protocol, twice each; the tokens count from 1. */
async function readAll(port: number): Promise<readonly string[]> {
  const sends = [
    () => sendHttp1(port, WATCH_GET_PATH),
    () => sendHttp2(port, WATCH_GET_PATH),
    () => sendHttp2(port, WATCH_PATH, post("application/grpc", BINARY)),
    () => sendHttp1(port, WATCH_PATH, post("application/grpc-web+proto", BINARY)),
    () => sendHttp1(port, WATCH_PATH, post("application/connect+proto", BINARY)),
    () => sendHttp2(port, WATCH_PATH, post("application/connect+json", JSON_BODY)),
  ];
  const bodies: string[] = [];
  for (const send of [...sends, ...sends]) bodies.push((await send()).body.replace(/^retry: .*/, "retry"));
  return bodies;
}

test("a frozen state is encoded once for events, once in binary and once in JSON, however many streams get it", async () => {
  const { state, count } = createCountedState();
  const bodies = await readAll(await serve(Object.freeze(state)));
  expect(count()).toBe(3);
  // Another state would not be frozen, and is encoded each time.
  expect(bodies).toEqual(await readAll(await serve(create(GetTransferStatusResponseSchema, FIELDS))));
});

test("each stream gets the state with its own token", async () => {
  const bodies = await readAll(await serve(Object.freeze(create(GetTransferStatusResponseSchema, FIELDS))));
  const responseOf = (number: number) =>
    create(WatchTransfersResponseSchema, {
      resumeToken: `token${number}`,
      event: { case: "transfer", value: create(GetTransferStatusResponseSchema, FIELDS) },
    });
  for (const number of [1, 2, 7, 8])
    expect(bodies[number - 1]).toContain(`event: transfer\nid: token${number}\ndata: {`);
  const expectMessage = (number: number, message: Uint8Array) =>
    expect(bodies[number - 1]?.startsWith(envelope(message).toString())).toBe(true);
  for (const number of [3, 4, 5, 9, 10, 11])
    expectMessage(number, toBinary(WatchTransfersResponseSchema, responseOf(number)));
  for (const number of [6, 12])
    expectMessage(number, Buffer.from(toJsonString(WatchTransfersResponseSchema, responseOf(number))));
});

test("a state that may still change is encoded each time", async () => {
  const { state, count } = createCountedState();
  await readAll(await serve(state));
  expect(count()).toBe(12);
});
