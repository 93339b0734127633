import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import {
  createRedisConnection,
  type DisconnectReason,
  MAX_PENDING_COMMANDS,
  type RedisConnection,
} from "../../../../../src/shared-state/redis/protocol/connection.js";
import { closeAfterTest } from "../../../../support/close-after-test.js";

const PASSWORD = "a planted password";
/** So long that only a hang exceeds it. */
const LONG_MS = 60_000;
const HELLO_REPLY = "%1\r\n+server\r\n+redis\r\n";

/** A server that replies to each command what a function returns; undefined: nothing. */
async function startFake(reply: (command: readonly string[], socket: Socket) => string | undefined, port = 0) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (const text of chunk.toString().split(/(?=\*\d+\r\n)/)) {
        const command = text.split("\r\n").filter((_, index) => index > 0 && index % 2 === 0);
        const answer = command[0] === "HELLO" ? HELLO_REPLY : reply(command, socket);
        if (answer !== undefined) socket.write(answer);
      }
    });
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  return closeAfterTest({
    port: (server.address() as AddressInfo).port,
    sockets,
    async close() {
      if (!server.listening) return;
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  });
}

interface Started {
  readonly connection: RedisConnection;
  readonly changes: (DisconnectReason | "connected")[];
  /** Advances the clock of the connection. */
  advance(ms: number): void;
}

function start(port: number, password: string | undefined = undefined): Started {
  const changes: (DisconnectReason | "connected")[] = [];
  let skippedMs = 0;
  const connection = createRedisConnection({
    target: { host: "127.0.0.1", port, isTls: false, username: undefined, password, database: 0 },
    now: () => performance.now() + skippedMs,
    random: () => 0,
    onStateChange: (isConnected, reason) => void changes.push(isConnected ? "connected" : (reason ?? "failed")),
  });
  closeAfterTest(connection);
  return {
    connection,
    changes,
    advance(ms) {
      skippedMs += ms;
    },
  };
}

const waitForConnect = ({ connection }: Started) => expect.poll(() => connection.stats().isConnected).toBe(true);

describe("the connection to Redis", () => {
  test("resolves to the replies in the order of the commands", async () => {
    const { port } = await startFake(([name, text]) => (name === "ECHO" ? `+${text}\r\n` : "+PONG\r\n"));
    const started = start(port);
    await waitForConnect(started);
    const replies = ["a", "b", "c"].map((text) => started.connection.call(["ECHO", text], LONG_MS));
    expect(await Promise.all(replies)).toEqual(["a", "b", "c"]);
    expect(started.connection.stats().commands).toMatchObject({ ok: 3, refused: 0, timed_out: 0 });
  });

  test("resolves to nothing for an error, and says which kinds of results there were", async () => {
    const { port } = await startFake(([name]) => (name === "SET" ? "-OOM full\r\n" : "+PONG\r\n"));
    const started = start(port);
    expect(await started.connection.call(["PING"])).toBeUndefined();
    await waitForConnect(started);
    expect(await started.connection.call(["SET"], LONG_MS)).toBeUndefined();
    expect(started.connection.stats().commands).toMatchObject({ refused: 1, skipped: 1 });
  });

  test("waits 5 ms, gives the late reply to nobody else, and skips a server that does not reply", async () => {
    const held: (() => void)[] = [];
    const { port } = await startFake(([name, text], socket) => {
      if (name === "ECHO") held.push(() => socket.write(`+${text}\r\n`));
      return name === "ECHO" ? undefined : "+PONG\r\n";
    });
    const started = start(port);
    await waitForConnect(started);
    const { connection } = started;
    expect(await connection.call(["ECHO", "late"])).toBeUndefined();
    expect(connection.stats().commands.timed_out).toBe(1);
    await expect.poll(() => connection.isResponsive()).toBe(false);
    expect(await connection.call(["ECHO", "not sent"], LONG_MS)).toBeUndefined();
    expect(held).toHaveLength(1);
    held.shift()?.();
    await expect.poll(() => connection.isResponsive()).toBe(true);
    const reply = connection.call(["ECHO", "next"], LONG_MS);
    await expect.poll(() => held).toHaveLength(1);
    held.shift()?.();
    expect(await reply).toBe("next");
  });

  test("connects again after a server has been silent for a second", async () => {
    let isSilent = true;
    const { port, sockets } = await startFake(() => (isSilent ? undefined : "+PONG\r\n"));
    const started = start(port);
    await waitForConnect(started);
    const reply = started.connection.call(["PING"], LONG_MS);
    started.advance(1_001);
    expect(await reply).toBeUndefined();
    isSilent = false;
    await expect.poll(() => started.changes).toEqual(["connected", "silent", "connected"]);
    expect(sockets.size).toBe(2);
  });

  test.each([
    ["garbage", "nonsense\r\n"],
    ["a web page", "HTTP/1.1 200 OK\r\n\r\n"],
    ["a reply that nobody asked for", "_\r\n"],
    ["a text without end", `$${2 ** 31}\r\n`],
    // The decoder of `@redis/client` 6.3.1 reads the same text again and again until the memory is full.
    ["a text of negative length in a long list", `>${2 ** 32 - 1}\r\n$*\r\nxxxx`],
    ["a message with a number of many digits", `>1\r\n(${"9".repeat(65_536)}\r\n`],
  ])("closes a connection over which %s arrives, and stays usable", async (_, junk) => {
    const { port, sockets } = await startFake(() => "+PONG\r\n");
    const started = start(port);
    await waitForConnect(started);
    for (const socket of sockets) socket.write(junk);
    await expect.poll(() => started.changes).toEqual(["connected", "invalid", "connected"]);
    expect(await started.connection.call(["PING"], LONG_MS)).toBe("PONG");
  });

  test("takes no harm from messages that are none", async () => {
    const { port, sockets } = await startFake(() => "+PONG\r\n");
    const started = start(port);
    const messages: string[] = [];
    started.connection.subscribe("channel", (message) => void messages.push(message));
    await waitForConnect(started);
    const junk = [
      ">1\r\n_\r\n",
      ">0\r\n",
      ">-1\r\n",
      ">3\r\n+message\r\n_\r\n_\r\n",
      ">3\r\n+message\r\n+other\r\n+x\r\n",
    ];
    for (const socket of sockets) socket.write(`${junk.join("")}>3\r\n+message\r\n+channel\r\n+hi\r\n`);
    await expect.poll(() => messages).toEqual(["hi"]);
  });

  test("has a limit of commands that wait", async () => {
    const { port } = await startFake(() => undefined);
    const started = start(port);
    await waitForConnect(started);
    for (let sent = 0; sent < MAX_PENDING_COMMANDS; sent++) void started.connection.call(["PING"], LONG_MS);
    expect(await started.connection.call(["PING"], LONG_MS)).toBeUndefined();
    expect(started.connection.stats().commands.skipped).toBeGreaterThan(0);
  });

  test("sends the password in the handshake, and reports a refusal once", async () => {
    const handshakes: (readonly string[])[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        handshakes.push(chunk.toString().split("\r\n"));
        socket.write(`-WRONGPASS ${PASSWORD}\r\n`);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    closeAfterTest(server);
    const started = start((server.address() as AddressInfo).port, PASSWORD);
    await expect.poll(() => handshakes.length).toBeGreaterThan(1);
    expect(handshakes[0]).toEqual(expect.arrayContaining(["HELLO", "3", "AUTH", "default", PASSWORD]));
    expect(started.changes).toEqual(["invalid"]);
    expect(started.connection.isResponsive()).toBe(false);
  });

  test("is made when the server starts after this process", async () => {
    const first = await startFake(() => undefined);
    await first.close();
    const started = start(first.port);
    await expect.poll(() => started.changes).toEqual(["failed"]);
    await startFake(() => "+PONG\r\n", first.port);
    await waitForConnect(started);
  });
});
