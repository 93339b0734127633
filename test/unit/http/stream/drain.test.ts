import { expect, test } from "vitest";
import { openHttp1Streams, openStreams } from "../support/open-streams.js";
import { createControlledWatch, WATCH_GET_PATH, WATCH_PATH } from "../support/stream-contract.js";
import { startTestServer } from "../support/test-server.js";

// A stream whose last message is a bookmark is resumed elsewhere, so that none of its changes is lost.

const HTTP1_STREAMS = 400;
const STREAMS = 5000;

test("at the end of the server 5,000 streams over every protocol end with a bookmark", async () => {
  const watch = createControlledWatch();
  // The streams of one caller.
  const limits = { operationStreams: 3 * STREAMS, totalStreams: 3 * STREAMS };
  const { port, server, accessLines } = await startTestServer({ watch: watch.operation, limits });
  let bookmarks = 0;
  // The id of the last message, in each protocol's form; a chunk may hold many, and end within one.
  const countIn = () => {
    let rest = "";
    return (chunk: Buffer) => {
      const parts = (rest + chunk.toString("latin1")).split("last");
      bookmarks += parts.length - 1;
      rest = parts.at(-1)?.slice(-3) ?? "";
    };
  };
  for (let opened = 0; opened < HTTP1_STREAMS; opened += 1) await openHttp1Streams(port, 1, countIn());
  const perKind = (STREAMS - HTTP1_STREAMS) / 2;
  for (let opened = 0; opened < perKind; opened += 100) {
    await openStreams(port, WATCH_GET_PATH, 100, { method: "GET", onData: countIn() });
    await openStreams(port, WATCH_PATH, 100, { onData: countIn() });
  }
  await expect.poll(() => server.getLoad().streamingCalls).toBe(STREAMS);
  const closed = server.close(600_000);
  await expect.poll(() => bookmarks).toBe(STREAMS);
  await closed;
  expect(watch.opened.every(({ events }) => events.join() === "drain,end")).toBe(true);
  expect(accessLines.filter(({ code }) => code === "ok")).toHaveLength(STREAMS);
});

test("streams that got no turn are told before their connections are closed by force", async () => {
  const watch = createControlledWatch();
  const operation: typeof watch.operation = (request, stream, context) => {
    const handlers = watch.operation(request, stream, context);
    return {
      ...handlers,
      onDrain() {
        for (const end = performance.now() + 30; performance.now() < end; );
        handlers.onDrain();
      },
    };
  };
  const { port, server } = await startTestServer({ watch: operation });
  await openHttp1Streams(port, 40, () => {});
  await expect.poll(() => server.getLoad().streamingCalls).toBe(40);
  await server.close(100);
  expect(watch.opened.map(({ events }) => events.join())).toEqual(Array.from({ length: 40 }, () => "drain,end"));
});
