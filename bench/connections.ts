import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { attackerAddress } from "../test/support/attacks/caller-addresses.js";
import {
  createFrameReader,
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "./support/http2-frames.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listenOnFreePort } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";
import { readResidentMb, startService } from "./support/service-process.js";

// Measures the memory of idle connections, each of which has had one answer, compared with bare servers of Node.js.

const CONNECTIONS = Number(process.env.CONNECTIONS ?? 10_000);
const OPENED_AT_ONCE = 50;
/** Addresses among which the connections are divided. */
const CALLERS = 50;
/** Until the server has released what answers took. */
const REST_MS = 10_000;
const PATH = "/livez";

type Version = "HTTP/1.1" | "HTTP/2";

interface MeasuredServer {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  readonly version: Version;
}

const requestHeaders = encodeHeaders([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", PATH],
  [":authority", "localhost"],
]);

/** Calls `onAnswer` at the first answer. */
function askOverHttp1(socket: Socket, onAnswer: () => void): void {
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  socket.once("data", onAnswer);
}

/** The same, and acknowledges SETTINGS and PINGs for as long as the connection is open. */
function askOverHttp2(socket: Socket, onAnswer: () => void): void {
  const flags = FRAME_FLAGS.endHeaders | FRAME_FLAGS.endStream;
  socket.write(encodeClientPreface());
  socket.write(encodeFrame(FRAME_TYPES.headers, flags, 1, requestHeaders.first));
  const read = createFrameReader((type, flagBits, stream, payload) => {
    const isRequest = stream === 0 && (flagBits & FRAME_FLAGS.ack) === 0;
    if (isRequest && type === FRAME_TYPES.settings)
      socket.write(encodeFrame(type, FRAME_FLAGS.ack, 0, Buffer.alloc(0)));
    if (isRequest && type === FRAME_TYPES.ping) socket.write(encodeFrame(type, FRAME_FLAGS.ack, 0, payload));
    if (stream === 1 && (flagBits & FRAME_FLAGS.endStream) !== 0) onAnswer();
  });
  socket.on("data", read);
}

function openConnection({ url, version }: MeasuredServer, index: number): Promise<Socket> {
  const { hostname: host, port } = new URL(url);
  const localAddress = attackerAddress(index, CALLERS);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ...(localAddress && { localAddress }) });
    socket.on("error", reject);
    (version === "HTTP/2" ? askOverHttp2 : askOverHttp1)(socket, () => resolve(socket));
  });
}

async function measure(server: MeasuredServer): Promise<void> {
  const before = await readResidentMb(server.pid);
  const sockets: Socket[] = [];
  while (sockets.length < CONNECTIONS) {
    const batch = Array.from({ length: Math.min(OPENED_AT_ONCE, CONNECTIONS - sockets.length) }, (_, index) =>
      openConnection(server, sockets.length + index),
    );
    sockets.push(...(await Promise.all(batch)));
  }
  await sleep(REST_MS);
  const after = await readResidentMb(server.pid);
  const open = sockets.filter(({ readyState }) => readyState === "open").length;
  const kilobytes = ((after - before) * 1024) / CONNECTIONS;
  const cells = [server.name, server.version, `${open} of ${CONNECTIONS}`, before.toFixed(0), after.toFixed(0)];
  console.log(`| ${[...cells, `${kilobytes.toFixed(1)} KB`].join(" | ")} |`);
  for (const socket of sockets) socket.destroy();
}

async function measureBare(role: string, version: Version): Promise<void> {
  const { url, pid, stop } = await startServer(role, {});
  await measure({ name: `bare node:${role}`, url, pid, version });
  await stop();
}

async function measureAll(environment: Readonly<Record<string, string>>): Promise<void> {
  console.log("| server | protocol | open | MB before | MB with them | for each |\n|---|---|---|---|---|---|");
  for (const version of ["HTTP/1.1", "HTTP/2"] as const) {
    await measureBare(version === "HTTP/2" ? "http2" : "http", version);
    const service = await startService(environment);
    await measure({ name: "hop-gateway", url: service.url, pid: service.pid, version });
    await service.stop();
  }
}

await runBench(() => withLocalNetwork(measureAll), {
  http: () => listenOnFreePort(createHttp1Server({ keepAliveTimeout: 600_000 }, (_, res) => res.end("ok"))),
  http2: () => {
    const server = createHttp2Server();
    server.on("stream", (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
    return listenOnFreePort(server);
  },
});
