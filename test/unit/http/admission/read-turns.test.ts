import { constants } from "node:http2";
import { Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { encodeClientPreface, encodeFrame, FRAME_TYPES } from "../../../../bench/support/http2-frames.js";
import { Connection, type ConnectionProtocol } from "../../../../src/http/admission/overload-manager.js";
import { ReadTurns } from "../../../../src/http/admission/read-turns.js";
import { encodeGet, openPeer } from "../support/http2-peer.js";
import { openHttp2 } from "../support/raw-client.js";
import { startTestServer } from "../support/test-server.js";

/** Far more turns of the event loop than anything here needs. */
const MAX_TURNS = 10_000;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function untilReading(reading: ReadonlySet<string>, count: number): Promise<void> {
  for (let turns = 0; reading.size < count && turns < MAX_TURNS; turns++) await nextTurn();
  expect(reading.size).toBeGreaterThanOrEqual(count);
}

/** Connections of which it is known whether they are read. */
function setup() {
  const reads = new ReadTurns();
  const reading = new Set<string>();
  function connect(name: string, { caller = name, openCallers = [] as readonly string[] } = {}): Connection {
    const socket = {
      destroyed: false,
      _handle: { readStart: () => reading.add(name), readStop: () => reading.delete(name) },
    };
    const connection = new Connection(socket as unknown as Socket, caller);
    connection.protocol = { listCallers: () => openCallers } as Partial<ConnectionProtocol> as ConnectionProtocol;
    reading.add(name);
    reads.add(connection);
    return connection;
  }
  const bring = (connection: Connection, requests: number): void => {
    for (let count = 0; count < requests; count++) reads.countRequest(connection);
  };
  return { reads, reading, connect, bring };
}

describe("reading HTTP/2 connections in turns", () => {
  test("reads all connections at once while few requests begin in a turn of the event loop", async () => {
    const { reading, connect, bring } = setup();
    const [a] = ["a", "b"].map((name) => connect(name)) as [Connection, Connection];
    for (let turn = 0; turn < 3; turn++) {
      bring(a, 256);
      expect(reading.size).toBe(2);
      await nextTurn();
      await nextTurn();
    }
  });

  test("leaves a connection that brought many unread while its caller may bring no more, and reads others", async () => {
    const { reads, reading, connect, bring } = setup();
    let hasRoom = false;
    const asked = new Set<string>();
    reads.limitBy((caller, requests) => {
      asked.add(`${caller} ${requests}`);
      return hasRoom;
    });
    const [flood] = ["flood", "quiet"].map((name) => connect(name)) as [Connection, Connection];
    bring(flood, 257);
    expect(reading.size).toBe(0);
    await untilReading(reading, 1);
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    expect([...reading]).toEqual(["quiet"]);
    expect([...asked]).toEqual(["flood 257"]);
    hasRoom = true;
    await untilReading(reading, 2);
  });

  test("reads a connection that brought many after five seconds, whatever its caller may bring", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { reads, reading, connect, bring } = setup();
    reads.limitBy(() => false);
    bring(connect("flood"), 257);
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    expect(reading.size).toBe(0);
    vi.advanceTimersByTime(5_000);
    await untilReading(reading, 1);
  });

  test("stops all connections after many requests, and reads one that brought them in a turn, but sixteen others", async () => {
    const { reading, connect, bring } = setup();
    const flood = connect("flood");
    for (let index = 0; index < 40; index++) connect(`quiet ${index}`);
    await nextTurn();
    bring(flood, 257);
    expect(reading.size).toBe(0);
    await untilReading(reading, 1);
    expect([...reading]).toEqual(["flood"]);
    await untilReading(reading, 2);
    expect(reading.size).toBeLessThanOrEqual(17);
    await untilReading(reading, 41);
  });

  test("divides turns among callers, and reads the requests that a caller has begun first", async () => {
    const { reading, connect, bring } = setup();
    const floods = Array.from({ length: 10 }, (_, index) => connect(`flood ${index}`, { caller: "many" }));
    const busy = connect("busy", { caller: "many", openCallers: ["many"] });
    connect("other");
    await nextTurn();
    for (const flood of floods) bring(flood, 20);
    bring(busy, 57);
    for (const connection of [...floods, busy]) connection.requestsInTurn = 250;
    expect(reading.size).toBe(0);
    await untilReading(reading, 1);
    expect([...reading][0]).toBe("busy");
    await untilReading(reading, 6);
    expect([...reading].slice(0, 6)).toContain("other");
  });

  test("does not read a connection that was accepted meanwhile before those that wait", async () => {
    const { reading, connect, bring } = setup();
    bring(connect("a"), 257);
    connect("late");
    expect(reading.size).toBe(0);
    await untilReading(reading, 2);
    expect([...reading]).toEqual(["a", "late"]);
  });

  test("begins one session per turn if its connection has sent much", async () => {
    const { reads, connect } = setup();
    const begun: number[] = [];
    let turn = 0;
    for (const name of ["a", "b", "c"]) reads.beginSession(connect(name), 40_000, () => void begun.push(turn));
    for (; begun.length < 3 && turn < MAX_TURNS; turn++) await nextTurn();
    expect(new Set(begun).size).toBe(3);
  });

  test("stops no other connection for what a new session brings", async () => {
    const { reads, reading, connect, bring } = setup();
    const quiet = connect("quiet");
    const connection = connect("session");
    await new Promise<void>((resolve) => reads.beginSession(connection, 30_000, () => process.nextTick(resolve)));
    bring(connection, 250);
    expect([...reading]).toEqual(["quiet", "session"]);
    bring(quiet, 1);
    expect(reading.size).toBe(2);
  });
});

describe("work for requests whose end may not be read yet", () => {
  /** Returns whose work has begun, given the callers of each piece. */
  function begin(reads: ReadTurns, ...callers: readonly string[][]): ReadonlySet<string> {
    const begun = new Set<string>();
    for (const each of callers) void reads.untilRead(each).then(() => begun.add(each.join("+")));
    return begun;
  }

  test("begins in the next turn of the event loop while connections are read at once", async () => {
    const { reads, connect } = setup();
    connect("a", { openCallers: ["a"] });
    const begun = begin(reads, ["a"]);
    await null;
    expect(begun.size).toBe(0);
    await nextTurn();
    expect([...begun]).toEqual(["a"]);
  });

  test("begins when the connection with its requests has been read, and that of others at once", async () => {
    const { reads, reading, connect, bring } = setup();
    connect("proxy", { openCallers: ["a", "a", "b"] });
    bring(connect("flood", { openCallers: ["flood"] }), 257);
    const begun = begin(reads, ["a"], ["b"], ["a", "other"], ["other"], ["flood"]);
    await nextTurn();
    expect([...begun]).toEqual(["a+other", "other"]);
    await untilReading(reading, 2);
    for (let turns = 0; begun.size < 5 && turns < MAX_TURNS; turns++) await nextTurn();
    expect([...begun].sort()).toEqual(["a", "a+other", "b", "flood", "other"]);
  });

  test("waits for one read, however often its connection is stopped again", async () => {
    const { reads, reading, connect, bring } = setup();
    const flood = connect("flood", { openCallers: ["flood"] });
    bring(flood, 257);
    const begun = begin(reads, ["flood"]);
    for (let turns = 0; begun.size < 1 && turns < MAX_TURNS; turns++) {
      await nextTurn();
      if (reading.has("flood")) bring(flood, 257);
    }
    expect([...begun]).toEqual(["flood"]);
  });

  test("begins although its connection was closed before it was read", async () => {
    const { reads, reading, connect, bring } = setup();
    const flood = connect("flood", { openCallers: ["flood"] });
    bring(flood, 257);
    Object.assign(flood.socket, { destroyed: true });
    await reads.untilRead(["flood"]);
    expect(reading.size).toBe(0);
  });
});

test("work for a stream that its caller has reset begins no sooner than that is read", async () => {
  const reads = new ReadTurns();
  const never = new Promise<never>(() => {});
  const { port, server } = await startTestServer({ reads, getQuote: () => never, trustProxy: true });
  const request = openHttp2(port).request({ ":path": "/v1/quote?amount=1", "x-forwarded-for": "192.0.2.7" });
  await expect.poll(() => server.getLoad().openStreams).toBe(1);
  // What begins a session does not count, nor does the rest of its turn.
  await nextTurn();
  await nextTurn();
  request.close(constants.NGHTTP2_CANCEL);
  const flood = new Connection(new Socket(), "another");
  for (let count = 0; count < 257; count++) reads.countRequest(flood);
  await reads.untilRead(["192.0.2.7"]);
  expect(server.getLoad().openStreams).toBe(0);
});

const REQUESTS = 250;

/** Requests of one connection for a path that does not exist. */
const BURST = Buffer.concat(
  Array.from({ length: REQUESTS }, (_, index) => encodeFrame(FRAME_TYPES.headers, 5, 2 * index + 1, encodeGet("/x"))),
);

test("begins the requests of a few connections in a turn of the event loop, however many send some", async () => {
  const { port, server } = await startTestServer({ limits: { totalStreams: 100_000 } });
  let [ready, answered] = [0, 0];
  const openReady = () =>
    openPeer(port, (type, flags) => {
      if (type === FRAME_TYPES.settings && flags === 0) ready += 1;
      if (type === FRAME_TYPES.headers) answered += 1;
    });
  const sockets = await Promise.all(Array.from({ length: 8 }, openReady));
  for (const socket of sockets) socket.write(encodeClientPreface());
  await expect.poll(() => ready).toBe(sockets.length);
  for (const socket of sockets) socket.write(BURST);
  let [open, most] = [0, 0];
  for (let turns = 0; answered < sockets.length * REQUESTS && turns < MAX_TURNS; turns++) {
    await nextTurn();
    const { openStreams } = server.getLoad();
    most = Math.max(most, openStreams - open);
    open = openStreams;
  }
  expect(answered).toBe(sockets.length * REQUESTS);
  expect(most).toBeGreaterThanOrEqual(REQUESTS / 2);
  expect(most).toBeLessThanOrEqual(3 * REQUESTS);
});
