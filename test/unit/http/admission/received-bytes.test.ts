import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { openRawSocket, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

describeOnBothPaths(() => {
  describe("requests whose bodies stop are refused once all of them take too much", () => {
    const limits = { receivedBytes: 500_000 };
    const BODY_BYTES = 30_000;

    test.each([
      [
        "Connect with JSON",
        "application/json",
        '{"amount":"',
        /^HTTP\/1\.1 429 .*retry-after: 1\r\n.*"reason":"OVERLOADED"/is,
      ],
      [
        "Connect with gzip",
        "application/proto\r\nContent-Encoding: gzip",
        "",
        /^HTTP\/1\.1 429 .*resource_exhausted/is,
      ],
      ["gRPC-Web", "application/grpc-web+proto", "\0\0\0\xff\0", /^HTTP\/1\.1 200 .*grpc-status: 8\r\n/is],
    ])("over HTTP/1.1 with %s", async (_, type, start, expected) => {
      const { port, server, waitForAccessLines, accessLines, internalErrors } = await startTestServer({ limits });
      const head = `POST ${QUOTE_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\nContent-Type: ${type}\r\n\r\n`;
      const sockets: Socket[] = [];
      const responses: string[] = [];
      for (let index = 0; index < 20; index++) {
        const socket = await openRawSocket(port);
        onTestFinished(() => void socket.destroy());
        socket.on("data", (bytes: Buffer) => responses.push(bytes.toString("latin1")));
        socket.write(Buffer.concat([Buffer.from(head + start, "latin1"), Buffer.alloc(BODY_BYTES, 0x61)]));
        sockets.push(socket);
      }
      await expect.poll(() => server.getLoad().cuts.received_bytes).toBeGreaterThan(0);
      const { received_bytes: refused } = server.getLoad().cuts;
      await waitForAccessLines(refused);
      expect(accessLines[0]).toMatchObject({ code: "resource_exhausted" });
      await expect.poll(() => responses.length).toBeGreaterThan(0);
      expect(responses[0]).toMatch(expected);
      // The refused connections are closed, the others stay.
      await expect.poll(() => server.getLoad().connections).toBe(20 - refused);
      expect(server.getLoad().receivedBytes).toBeLessThan(500_000);
      expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
      for (const socket of sockets) socket.destroy();
      await expect.poll(() => server.getLoad().receivedBytes).toBe(0);
      expect(internalErrors).toEqual([]);
    });

    test.each([
      ["a unary call", QUOTE_PATH],
      ["a watch", "/grpc.health.v1.Health/Watch"],
      ["reflection", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"],
    ])("over HTTP/2 with gRPC: %s", async (_, path) => {
      const { url, port, server, internalErrors } = await startTestServer({ limits });
      const session = connectHttp2(url);
      onTestFinished(() => session.destroy());
      const outcomes: unknown[] = [];
      for (let index = 0; index < 20; index++) {
        const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
        const note = (headers: Record<string, unknown>) => {
          if ("grpc-status" in headers) outcomes.push([headers["grpc-status"], headers["grpc-message"]]);
        };
        stream
          .on("error", () => {})
          .on("response", note)
          .on("trailers", note)
          .resume();
        stream.write(Buffer.concat([Buffer.from([0, 0, 0, 0xff, 0]), Buffer.alloc(BODY_BYTES)]));
      }
      await expect.poll(() => outcomes.length).toBeGreaterThan(0);
      expect(outcomes[0]).toEqual(["8", "too many request bodies are being received here"]);
      await expect.poll(() => outcomes.length === server.getLoad().cuts.received_bytes).toBe(true);
      expect((await sendHttp2(port, "/v1/quote?amount=1")).status).toBe(200);
      session.destroy();
      await expect.poll(() => server.getLoad().receivedBytes).toBe(0);
      expect(internalErrors).toEqual([]);
    });
  });
});
