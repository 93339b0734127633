import { createServer as createHttp1Server } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer as createHttp2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type Haproxy, startHaproxy } from "./support/haproxy.js";
import { haproxyProgram, leftOut } from "./support/server-programs.js";

// What callers see of a connection to a replica that ends while HAProxy sends the next call over it: a race that no replica can
// avoid when it stops, so HAProxy has to send the call again.

const EMPTY_MESSAGE = Buffer.alloc(5);
const BODY_DELAY_MS = 30;
const WATCH_PATH = "/hop.bridge.v1.BridgeService/WatchTransfers";
const QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
const REFLECTION_PATH = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/**
 * Starts what HAProxy takes for a replica: its connections over HTTP/2 serve one call.
 * @param onSecondCall ends a connection; undefined: connections serve all calls
 */
async function startReplica(onSecondCall?: (socket: Socket, stream: ServerHttp2Stream) => void) {
  const http1 = createHttp1Server((_req, res) => res.end("{}"));
  const http2 = createHttp2Server();
  let ended = 0;
  const serve = (session: ServerHttp2Session, socket: Socket): void => {
    let calls = 0;
    session.on("error", () => {});
    session.on("stream", (stream) => {
      stream.on("error", () => {});
      calls += 1;
      if (calls > 1 && onSecondCall !== undefined) {
        ended += 1;
        onSecondCall(socket, stream);
        return;
      }
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.once("data", () => stream.end(EMPTY_MESSAGE));
    });
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("readable", () => {
      const start: Buffer = socket.read() ?? Buffer.alloc(0);
      socket.unshift(start);
      const isHttp2 = start.toString("latin1", 0, 3) === "PRI";
      if (isHttp2) http2.once("session", (session) => serve(session, socket));
      (isHttp2 ? http2 : http1).emit("connection", socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    countEnded: () => ended,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe.skipIf(haproxyProgram === undefined)(
  `HAProxy in front of a replica that stops${leftOut(haproxyProgram)}`,
  () => {
    const cleanups: (() => unknown)[] = [];
    afterEach(async () => {
      for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
    });

    /** Makes a call over gRPC and resolves with its status, or the code of its reset. */
    function call(session: ClientHttp2Session, path: string, isHalfClosed = true): Promise<string> {
      return new Promise((resolve) => {
        const stream = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": "application/grpc",
          te: "trailers",
        });
        const headers: Record<string, unknown> = {};
        stream.on("response", (given) => void Object.assign(headers, given));
        stream.on("trailers", (trailers) => {
          resolve(`grpc ${trailers["grpc-status"]}`);
          stream.close();
        });
        stream.on("error", () => {});
        stream.on("close", () => resolve(`HTTP ${headers[":status"]}, reset ${stream.rstCode}`));
        stream.resume();
        // The message comes after the headers, as it may on a network: what HAProxy has sent on it cannot send again.
        if (isHalfClosed) setTimeout(() => stream.end(EMPTY_MESSAGE), BODY_DELAY_MS);
        else stream.write(EMPTY_MESSAGE);
      });
    }

    test.each([
      ["is closed", (socket: Socket) => void socket.end()],
      ["is reset", (socket: Socket) => void socket.resetAndDestroy()],
      [
        "ends with a GOAWAY that leaves it out",
        (socket: Socket, { session, id = 0 }: ServerHttp2Stream) => {
          session?.goaway(constants.NGHTTP2_NO_ERROR, id - 2);
          setImmediate(() => socket.end());
        },
      ],
    ])("sends a call again whose connection %s", async (_, onSecondCall) => {
      const [replica, other] = await Promise.all([startReplica(onSecondCall), startReplica()]);
      cleanups.push(
        () => replica.close(),
        () => other.close(),
      );
      const haproxy: Haproxy = await startHaproxy([replica.port, other.port, other.port]);
      cleanups.push(() => haproxy.close());
      const session = connect(haproxy.url);
      cleanups.push(() => session.destroy());
      for (const path of [WATCH_PATH, QUOTE_PATH]) {
        const before = replica.countEnded();
        const outcomes: string[] = [];
        // Which of the replicas gets a call is up to HAProxy: of ten, some come over a connection that has served one.
        for (let count = 0; count < 10; count += 1) outcomes.push(await call(session, path));
        expect([path, ...new Set(outcomes)]).toEqual([path, "grpc 0"]);
        expect(replica.countEnded()).toBeGreaterThan(before);
      }
      // Reflection is a stream in both directions: it must not wait for its end.
      expect(await call(session, REFLECTION_PATH, false)).toBe("grpc 0");
    });
  },
);
