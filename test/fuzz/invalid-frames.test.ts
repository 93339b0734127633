import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../bench/support/http2-frames.js";
import { buildService } from "../support/service/build-service.js";
import { startServiceProcess } from "../support/service/service-process.js";

const { goAway, headers, reset } = FRAME_TYPES;
const request = encodeHeaders([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/v1/available-routes?token=HOP"],
  [":authority", "x"],
]).first;

test("an invalid frame after a GOAWAY and a request does not end the service", async () => {
  const service = await startServiceProcess(await buildService(), { ASSETS_URL: "off" });
  const socket = connect(service.port, "127.0.0.1");
  socket.on("error", () => {});
  const closed = once(socket, "close");
  // In one chunk: the session must not end between the frames.
  socket.write(
    Buffer.concat([
      encodeClientPreface(),
      encodeFrame(goAway, 0, 0, Buffer.alloc(8)),
      encodeFrame(headers, FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream, 9, request),
      encodeFrame(reset, 0, 1, Buffer.alloc(0)),
    ]),
  );
  socket.resume();
  await closed;
  const response = await fetch(`http://127.0.0.1:${service.port}/livez`);
  expect(response.status).toBe(200);
  service.signal("SIGTERM");
  expect(await service.exitCode).toBe(0);
});
