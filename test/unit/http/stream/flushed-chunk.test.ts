import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { writeFlushedChunk } from "../../../../src/http/stream/flushed-chunk.js";

// A chunk that is written in one piece is, byte for byte, the chunk that Node.js writes.

type Write = (res: ServerResponse, chunk: string, onFlushed: () => void) => void;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Serves responses by `respond` until it is done, and returns the bytes of as many as are requested on one connection. */
async function collect(respond: (res: ServerResponse) => Promise<void>, requests = 1): Promise<string> {
  const responding: Promise<void>[] = [];
  const server = createServer((_, res) => void responding.push(respond(res)));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  for (let left = requests; left > 0; left -= 1) {
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: ${left > 1 ? "keep-alive" : "close"}\r\n\r\n`);
  }
  const bytes = await text(socket);
  server.close();
  await Promise.all(responding);
  return bytes.replace(/Date: .*/g, "Date");
}

const CHUNKS = ["event: bookmark\nid: t1\ndata: {}\n\n", "data: é\u2028\n\n", "", "data: a\n\n", "x".repeat(100_000)];

/** Writes all chunks: some in a turn of their own, the others in the same turn as one before. */
const writeAll =
  (write: Write, isOneTurn: boolean, onFlushed: () => void) =>
  async (res: ServerResponse): Promise<void> => {
    for (const chunk of CHUNKS) {
      write(res, chunk, onFlushed);
      if (!isOneTurn) await nextTurn();
    }
    res.end("end");
  };
const byNode: Write = (res, chunk, onFlushed) => void res.write(chunk, "utf8", onFlushed);

test.each([
  ["in turns of their own", false],
  ["in one turn", true],
])("chunks %s are what Node.js writes, and each is reported once", async (_, isOneTurn) => {
  let flushed = 0;
  const ours = await collect(writeAll(writeFlushedChunk, isOneTurn, () => (flushed += 1)));
  expect(ours).toBe(await collect(writeAll(byNode, isOneTurn, () => {})));
  expect(flushed).toBe(CHUNKS.length);
});

test("a chunk in a turn of its own reaches the socket in one write", async () => {
  const lengths: number[] = [];
  await collect(async (res) => {
    res.write("first");
    await nextTurn();
    const { socket } = res;
    if (socket === null) throw new Error("the response has no socket");
    const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
    Object.assign(socket, {
      write: (chunk: string, ...rest: unknown[]) => {
        lengths.push(chunk.length);
        return write(chunk, ...rest);
      },
    });
    writeFlushedChunk(res, "second", () => {});
    expect(lengths).toEqual(["6\r\nsecond\r\n".length]);
    res.end();
  });
});

test("a response that waits for an earlier one on its connection keeps its place", async () => {
  const responses: ServerResponse[] = [];
  const bytes = await collect(async (res) => {
    responses.push(res);
    if (responses.length < 2) return;
    const [first, second] = responses as [ServerResponse, ServerResponse];
    writeFlushedChunk(second, "of the second", () => {});
    writeFlushedChunk(second, "again", () => {});
    await nextTurn();
    writeFlushedChunk(first, "of the first", () => {});
    first.end();
    await nextTurn();
    writeFlushedChunk(second, "at last", () => {});
    second.end();
  }, 2);
  const order = ["of the first", "of the second", "again", "at last"].map((part) => bytes.indexOf(part));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order[0]).toBeGreaterThan(0);
});

test("a chunk for a connection that is gone throws nothing, and is reported once at most", async () => {
  let flushed = 0;
  await collect(async (res) => {
    res.write("first");
    await nextTurn();
    const closed = once(res, "close");
    res.socket?.destroy();
    writeFlushedChunk(res, "second", () => (flushed += 1));
    await closed;
    await nextTurn();
  });
  // Node.js 20 to 24 drop the callback with the chunk: the end of the call releases what a stream holds.
  expect(flushed).toBeLessThanOrEqual(1);
});
