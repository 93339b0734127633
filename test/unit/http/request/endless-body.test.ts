import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { ServerReflectionRequestSchema } from "../../../../gen/grpc/reflection/v1/reflection_pb.js";
import { startTestServer } from "../support/test-server.js";

// A streaming body is read message by message, whatever its chunks, and each message has its limit.

async function startStream(limits = {}) {
  const { url } = await startTestServer({ limits });
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  const stream: ClientHttp2Stream = session.request({
    ":method": "POST",
    ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "content-type": "application/grpc",
  });
  let answers = 0;
  let status: unknown;
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    answers += chunk.toString("latin1").split("hop.bridge.v1.BridgeService").length - 1;
  });
  stream.on("trailers", (trailers) => {
    status = trailers["grpc-status"];
  });
  return { stream, answers: () => answers, status: () => status };
}

const question = (() => {
  const request = create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "" } });
  const bytes = toBinary(ServerReflectionRequestSchema, request);
  return Buffer.concat([Buffer.from([0, 0, 0, 0, bytes.length]), bytes]);
})();

test("yields each message as soon as it is complete, whatever the chunks", async () => {
  const { stream, answers, status } = await startStream();
  for (const byte of question) {
    expect(answers()).toBe(0);
    stream.write(Buffer.from([byte]));
    await sleep(2);
  }
  await expect.poll(answers).toBe(1);
  stream.write(Buffer.concat([question, question, question.subarray(0, 6)]));
  await expect.poll(answers).toBe(3);
  stream.end(Buffer.concat([question.subarray(6), question]));
  await expect.poll(status).toBe("0");
  expect(answers()).toBe(5);
});

test("rejects a message by its length prefix before it arrives", async () => {
  const { stream, status } = await startStream();
  stream.write(Buffer.from([0, 0, 1, 0, 1, 0, 0]));
  await expect.poll(status).toBe("8");
});

test("rejects a body that ends in the middle of a message", async () => {
  const { stream, status } = await startStream();
  stream.end(question.subarray(0, 6));
  await expect.poll(status).toBe("3");
});

test("restarts the timeout with each message", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { stream, answers, status } = await startStream({ idleMs: 400 });
  for (let count = 1; count <= 4; count++) {
    stream.write(question);
    // A poll would advance the timers.
    while (answers() < count) await once(stream, "data");
    vi.advanceTimersByTime(300);
  }
  expect(status()).toBeUndefined();
  // No more data arrives: the body ends.
  vi.advanceTimersByTime(400);
  await expect.poll(status).toBe("0");
});
