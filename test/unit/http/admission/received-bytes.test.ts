import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { collectText, openHttp2, openRawSocket, readStream, sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

describeOnBothPaths(() => {
  describe("requests whose bodies stop are refused once all of them take too much", () => {
    const limits = { receivedBytes: 500_000 };
    const BODY_BYTES = 30_000;

    const JSON_REFUSAL = /^HTTP\/1\.1 429 .*retry-after: 1\r\n.*"reason":"OVERLOADED"/is;
    const GZIP = "application/proto\r\nContent-Encoding: gzip";
    test.each([
      ["Connect with JSON", "application/json", '{"amount":"', JSON_REFUSAL],
      ["Connect with gzip", GZIP, "", /^HTTP\/1\.1 429 .*resource_exhausted/is],
      ["gRPC-Web", "application/grpc-web+proto", "\0\0\0\xff\0", /^HTTP\/1\.1 200 .*grpc-status: 8\r\n/is],
    ])("over HTTP/1.1 with %s", async (_, type, start, expected) => {
      const { port, server, logged, internalErrors } = await startTestServer({ limits });
      const head = `POST ${QUOTE_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\nContent-Type: ${type}\r\n\r\n`;
      const sockets: Socket[] = [];
      const texts: (() => string)[] = [];
      for (let index = 0; index < 20; index++) {
        const socket = await openRawSocket(port);
        socket.write(Buffer.concat([Buffer.from(head + start, "latin1"), Buffer.alloc(BODY_BYTES, 0x61)]));
        sockets.push(socket);
        texts.push(collectText(socket));
      }
      await expect.poll(() => server.getLoad().cuts.received_bytes).toBeGreaterThan(0);
      const { received_bytes: refused } = server.getLoad().cuts;
      expect((await logged(refused))[0]).toMatchObject({ code: "resource_exhausted" });
      await expect.poll(() => texts.find((text) => text() !== "")?.()).toMatch(expected);
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
      const { port, server, internalErrors } = await startTestServer({ limits });
      const session = openHttp2(port);
      const outcomes: unknown[] = [];
      async function send(): Promise<void> {
        const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
        stream.write(Buffer.concat([Buffer.from([0, 0, 0, 0xff, 0]), Buffer.alloc(BODY_BYTES)]));
        const { fields } = await readStream(stream);
        if ("grpc-status" in fields) outcomes.push([fields["grpc-status"], fields["grpc-message"]]);
      }
      for (let index = 0; index < 20; index++) void send();
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
