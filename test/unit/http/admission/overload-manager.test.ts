import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  Connection,
  type ConnectionProtocol,
  OverloadManager,
} from "../../../../src/http/admission/overload-manager.js";
import { MAX_WAITING_REQUESTS, ReadTurns } from "../../../../src/http/admission/read-turns.js";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "../../../../src/http/connection/http-limits.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";

const createManager = (limits: Partial<HttpLimits>) =>
  new OverloadManager({ ...DEFAULT_HTTP_LIMITS, ...limits }, new Scheduler(), new FairScheduler());

/** Names of the connections that were closed. */
const closed: string[] = [];
afterEach(() => {
  closed.length = 0;
  vi.useRealTimers();
});

/** Creates a connection of the caller that its name begins with. */
function createConnection(name: string, protocol: Partial<ConnectionProtocol>): Connection {
  const socket = Object.assign(new EventEmitter(), { destroy: () => closed.push(name) }) as unknown as Socket;
  const connection = new Connection(socket, name.charAt(0));
  connection.protocol = {
    isIdle: () => false,
    checkPeer() {},
    isOverdue: () => false,
    countBytes: () => 0,
    closeGracefully() {},
    closeIfIdle() {},
    destroy() {},
    ...protocol,
  };
  return connection;
}

describe("when all connections are taken", () => {
  test("another caller replaces a connection of the caller with the most", () => {
    const manager = createManager({ connections: 5 });
    const add = (name: string) => manager.tryAddConnection(createConnection(name, {}));
    expect(["a1", "a2", "a3", "a4", "b1"].map(add)).toEqual(Array(5).fill(true));
    // All are busy: a newcomer replaces a connection of a caller with more than twice as many, until that would be
    // unfair.
    expect(["b2", "b3", "a5", "c1"].map(add)).toEqual([true, false, false, true]);
    expect(closed).toEqual(["a1", "b3", "a5", "a2"]);
    expect([...manager.connections()]).toHaveLength(5);
    expect(manager.getLoad().connections).toBe(5);
  });

  test("an idle connection is found behind any number of busy ones", () => {
    const manager = createManager({ connections: 151 });
    for (let index = 0; index < 150; index++) manager.tryAddConnection(createConnection(`a busy ${index}`, {}));
    manager.tryAddConnection(createConnection("a idle", { isIdle: () => true }));
    const added = Array.from({ length: 3 }, () => manager.tryAddConnection(createConnection("a new", {})));
    expect(added).toEqual([false, false, true]);
    expect(closed).toEqual(["a new", "a new", "a idle"]);
  });

  test("a connection whose protocol is not known yet counts as idle", () => {
    const manager = createManager({ connections: 1 });
    const silent = createConnection("a silent", {});
    silent.protocol = undefined;
    expect([silent, createConnection("a new", {})].map((it) => manager.tryAddConnection(it))).toEqual([true, true]);
    expect(closed).toEqual(["a silent"]);
  });
});

test("unsent bytes beyond the limit close the largest connection of the caller that holds most at each step", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const manager = createManager({ unsentBytes: 170 });
  const sizes = { a1: 10, b1: 40, a2: 50, c1: 45, a3: 30, d1: 0 };
  for (const [name, bytes] of Object.entries(sizes)) {
    manager.tryAddConnection(createConnection(name, { countBytes: () => bytes }));
  }
  vi.advanceTimersByTime(1000);
  // Totals: a 90, b 40, c 45; then a 40, b 40, c 45. Three quarters of the limit are left then.
  expect(closed).toEqual(["a2"]);
  expect(manager.getLoad()).toMatchObject({ unsentBytes: 125, cuts: { unsent_bytes: 1, response_deadline: 0 } });
});

test("a connection that is overdue is closed, and its bytes do not cost others theirs", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const manager = createManager({ unsentBytes: 100 });
  manager.tryAddConnection(createConnection("a late", { isOverdue: () => true, countBytes: () => 90 }));
  manager.tryAddConnection(createConnection("b", { countBytes: () => 90 }));
  vi.advanceTimersByTime(1000);
  expect(closed).toEqual(["a late"]);
  expect(manager.getLoad()).toMatchObject({ unsentBytes: 90, cuts: { unsent_bytes: 0, response_deadline: 1 } });
});

describe("bodies that are not complete", () => {
  /** What an open request is counted with beside its bytes. */
  const OPEN_BYTES = 4096;
  const nextTick = () => new Promise<void>((resolve) => process.nextTick(() => process.nextTick(resolve)));

  /** Receives a body of one chunk. */
  function receive(manager: OverloadManager, caller: string, bytes: number, refused: string[], name = caller) {
    const body = manager.receiveBody({ caller }, () => refused.push(name));
    body.append(Buffer.alloc(bytes));
    return body;
  }

  test("are refused when all take too much: the largest of the caller that holds most, until a quarter is free", async () => {
    const manager = createManager({ receivedBytes: 1_000_000 });
    const refused: string[] = [];
    receive(manager, "b", 200_000, refused);
    const small = receive(manager, "a", 50_000, refused, "a small");
    const large = receive(manager, "a", 190_000, refused, "a large");
    receive(manager, "a", 180_000, refused, "a second");
    await nextTick();
    expect(refused).toEqual([]);
    receive(manager, "c", 400_000, refused);
    await nextTick();
    expect(refused).toEqual(["a large", "c"]);
    expect([small.chunks.length, large.chunks.length]).toEqual([1, 0]);
    const { receivedBytes, cuts } = manager.getLoad();
    expect(receivedBytes).toBeLessThan(750_000);
    expect(cuts.received_bytes).toBe(2);
  });

  test("count without any bytes", async () => {
    const manager = createManager({ receivedBytes: 10 * OPEN_BYTES });
    const refused: string[] = [];
    for (let index = 0; index < 11; index++) manager.receiveBody({ caller: "a" }, () => refused.push("a"));
    await nextTick();
    expect(refused).toHaveLength(4);
    expect(manager.getLoad().receivedBytes).toBe(7 * OPEN_BYTES);
  });

  test("count what small chunks take, and nothing once they have ended", () => {
    const manager = createManager({ receivedBytes: 1_000_000 });
    const body = receive(manager, "a", 1, []);
    for (let index = 0; index < 30; index++) body.append(Buffer.alloc(1));
    expect(manager.getLoad().receivedBytes).toBeGreaterThan(OPEN_BYTES + 30 * 250);
    for (let index = 0; index < 1000; index++) body.append(Buffer.alloc(1));
    expect(manager.getLoad().receivedBytes).toBeLessThan(OPEN_BYTES + 1031 + 64 * 300);
    expect(Buffer.concat(body.chunks)).toEqual(Buffer.alloc(1031));
    body.end();
    body.end();
    body.append(Buffer.alloc(1));
    expect(manager.getLoad().receivedBytes).toBe(0);
  });

  test("keep no buffer of which they use a small part", () => {
    const read = Buffer.alloc(65_536, 7);
    const body = createManager({}).receiveBody({ caller: "a" }, () => {});
    body.append(read.subarray(100, 103));
    expect(body.chunks).toEqual([Buffer.from([7, 7, 7])]);
    expect(body.chunks[0]?.buffer.byteLength).toBe(3);
  });
});

test("while many requests wait for their turn, a caller without room for more of them brings none", () => {
  const [eventLoop, reads] = [new FairScheduler(), new ReadTurns()];
  const limitBy = vi.spyOn(reads, "limitBy");
  const overload = new OverloadManager(DEFAULT_HTTP_LIMITS, new Scheduler(), eventLoop, reads);
  const mayBring = limitBy.mock.calls[0]?.[0] as Parameters<ReadTurns["limitBy"]>[0];
  for (let streams = 0; streams < 900; streams++) overload.tryOpenStream("flood");
  expect(mayBring("flood", 300)).toBe(true);
  for (let count = 0; count <= MAX_WAITING_REQUESTS; count++) eventLoop.schedule({ caller: "flood" }, () => {});
  expect(mayBring("flood", 300)).toBe(false);
  expect(mayBring("another", 300)).toBe(true);
});
