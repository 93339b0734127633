import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import {
  GetTransferStatusResponseSchema,
  WatchTransfersRequestSchema,
  type WatchTransfersResponse,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createWatchTransfers } from "../../../../src/operations/transfers/watch-transfers.js";
import type { WatchSink } from "../../../../src/transfers/watch/watch-lifecycle.js";

type Init = Exclude<MessageInitShape<typeof WatchTransfersRequestSchema>, { $typeName: string }>;

const ID = `0x${"ab".repeat(32)}`;
const HASH = `0x${"cd".repeat(32)}`;
const handlers = { onReady() {}, onDrain() {}, onEnd() {} };

/** Calls the operation, and returns what it opened and what its stream got. */
function call(init: Init) {
  const open = vi.fn((_query: unknown, _sink: WatchSink<never>) => handlers);
  const sent: WatchTransfersResponse[] = [];
  const stream = { isReady: vi.fn(() => true), send: (message: never) => sent.push(message), end: vi.fn() };
  const interrupt = vi.fn();
  const fields: object[] = [];
  const context = { caller: "10.0.0.1", addLogFields: (added: object) => fields.push(added) };
  const deps = { watcher: { open } } as unknown as Parameters<typeof createWatchTransfers>[0];
  const watch = createWatchTransfers(deps);
  const result = watch(create(WatchTransfersRequestSchema, init), { ...stream, interrupt } as never, context as never);
  const [query, sink] = open.mock.calls[0] as unknown as [Record<string, unknown>, WatchSink<unknown>];
  return { result, query, sink, sent, stream: { ...stream, interrupt }, fields };
}

describe("every parameter is refused by its name", () => {
  const many = (count: number) => Array.from({ length: count }, () => HASH);
  test.each<[string, Init, string, string | undefined]>([
    ["nothing to watch", {}, "MISSING_PARAMETER", "transferId"],
    ["a CCTP nonce of more than 64 bits", { transferId: [String(2n ** 64n)] }, "INVALID_PARAMETER", "transferId"],
    ["101 hashes", { transferHash: many(101) }, "INVALID_PARAMETER", "transferHash"],
    ["101 of both kinds", { transferId: [ID], transferHash: many(100) }, "INVALID_PARAMETER", "transferId"],
    [
      "an account beside a transfer",
      { account: `0x${"ab".repeat(20)}`, transferId: [ID] },
      "INVALID_PARAMETER",
      "account",
    ],
    [
      "a chain of another network",
      { transferId: [ID], network: "goerli", fromChain: "gnosis" },
      "UNSUPPORTED_CHAIN",
      "fromChain",
    ],
  ])("%s", (_, init, reason, field) => {
    expect(() => call(init)).toThrow(expect.objectContaining({ reason, field }));
  });
});

test("opens a watch of all transfers, for the caller, from its token", () => {
  const { result, query, fields } = call({
    ...{ transferId: ["123", ID.toUpperCase().replace("0X", "0x")], transferHash: [HASH] },
    ...{ fromChain: "polygon", resumeToken: "token", view: "FULL" },
  });
  expect(result).toBe(handlers);
  expect(query).toMatchObject({ resumeToken: "token", likelySource: "polygon", caller: "10.0.0.1" });
  expect(query.targets).toMatchObject([
    { kind: "id", value: "123", isFull: true, network: { slug: "mainnet" } },
    { kind: "id", value: ID, isFull: true },
    { kind: "hash", value: HASH, isFull: true },
  ]);
  expect(fields).toEqual([{ network: "mainnet", watched: 3 }]);
});

test("100 transfers can be watched, and a hint is not needed", () => {
  const { query } = call({ transferHash: Array.from({ length: 100 }, () => HASH) });
  expect(query).toMatchObject({ likelySource: "", resumeToken: "" });
});

describe("the events of a watch are messages with their tokens", () => {
  const id = { network: undefined as never, kind: "id", value: ID, isFull: false } as const;

  test("transfers, unknown transfers and bookmarks", () => {
    const { sink, sent } = call({ transferId: [ID] });
    const transfer = create(GetTransferStatusResponseSchema, { transferId: ID });
    sink.send({ kind: "transfer", message: transfer }, "t1");
    sink.send({ kind: "unknown", target: id, isFinal: false }, "t2");
    sink.send({ kind: "unknown", target: { ...id, kind: "hash", value: HASH }, isFinal: true }, "t3");
    sink.send({ kind: "bookmark" }, "t4");
    expect(sent).toMatchObject([
      { resumeToken: "t1", event: { case: "transfer", value: transfer } },
      { resumeToken: "t2", event: { case: "unknown", value: { transferId: ID, transferHash: "", isFinal: false } } },
      { resumeToken: "t3", event: { case: "unknown", value: { transferId: "", transferHash: HASH, isFinal: true } } },
      { resumeToken: "t4", event: { case: "bookmark" } },
    ]);
  });

  test("and its readiness and ends are those of the stream", () => {
    const { sink, stream } = call({ transferId: [ID] });
    stream.isReady.mockReturnValue(false);
    expect(sink.isReady()).toBe(false);
    const failure = new Error("failed");
    sink.end(failure);
    expect(stream.end).toHaveBeenCalledWith(failure);
    sink.interrupt();
    expect(stream.interrupt).toHaveBeenCalledOnce();
  });
});
