import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { openSqlite, openSqliteDatabase } from "../../../../src/transfers/index/database/sqlite-database.js";
import { Leases } from "../../../../src/transfers/index/leases.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { holdLease } from "../../../support/index/hold-lease.js";
import { openIndex, useTestIndexes } from "../../../support/index/open-index.js";

// The leases of several processes that share a file. test/replicas has those of a server, and kills their holders.

const indexes = useTestIndexes();

async function createFile(): Promise<string> {
  const file = indexes.createPath();
  await (await openIndex(file)).close();
  return file;
}

/** The leases of one process, on a clock that the test controls; its pauses end at once. */
async function launch(file: string) {
  const database = await openSqliteDatabase(file);
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await database.close();
    isOpen = false;
  };
  onTestFinished(close);
  const clock = { time: 0 };
  const leases = new Leases(database, { now: () => clock.time, sleep: async () => setImmediate() });
  return { leases, database, clock, close };
}

/** Lets the leases of a file expire. */
async function expire(file: string): Promise<void> {
  const connection = await openSqlite(file);
  connection.exec("update leases set expires_at = 0");
  connection.close();
}

const createListener = () => ({ onLeaseHeld: vi.fn(), onError: vi.fn() });
const NEVER = new AbortController().signal;

test("a lease has one holder at a time, which others can name, and is free after its release", async () => {
  const file = await createFile();
  const [{ leases: first }, { leases: second }] = [await launch(file), await launch(file)];
  const lease = await holdLease(first);
  await expect(holdLease(second)).rejects.toEqual({ pid: process.pid });
  await holdLease(second, "history.base");
  await lease.release();
  await holdLease(second);
  await expect(holdLease(first)).rejects.toEqual({ pid: process.pid });
  expect([first.list(), second.list()]).toEqual([[], ["history.base", "follow"]]);
});

test("a lease is free six seconds after the last heartbeat of its holder, and not before", async () => {
  const file = await createFile();
  const [{ leases: first }, { leases: second }] = [await launch(file), await launch(file)];
  await holdLease(first);
  const connection = closeAfterTest(await openSqlite(file));
  const readRemainingMs = () =>
    Number(connection.prepare("select expires_at - unixepoch('subsec') * 1000 as ms from leases").get().ms);
  expect(readRemainingMs()).toBeLessThanOrEqual(6_000);
  connection.exec("update leases set expires_at = expires_at - 5000");
  expect(readRemainingMs()).toBeLessThanOrEqual(1_000);
  await first.renew();
  expect(readRemainingMs()).toBeGreaterThan(1_000);
  await expect(holdLease(second)).rejects.toEqual({ pid: process.pid });
  await expire(file);
  await holdLease(second);
});

test("who has lost a lease cannot write, and knows it at the next heartbeat", async () => {
  const file = await createFile();
  const [first, second] = [await launch(file), await launch(file)];
  const lost = await holdLease(first.leases);
  await expire(file);
  const taken = await holdLease(second.leases);
  const write = first.database.transact((transaction) => first.leases.assertHeld(transaction));
  await expect(write).rejects.toThrow("another process has taken over");
  expect([lost.lost.aborted, taken.lost.aborted]).toEqual([true, false]);
  await second.database.transact((transaction) => second.leases.assertHeld(transaction));
  await expire(file);
  await holdLease(first.leases);
  second.clock.time += 1_500;
  await second.leases.renew();
  expect(taken.lost.aborted).toBe(true);
});

test("who cannot renew a lease for six seconds counts it as lost", async () => {
  const { leases, clock, close } = await launch(await createFile());
  const { lost } = await holdLease(leases);
  await close();
  clock.time += 5_999;
  await leases.renew();
  expect(lost.aborted).toBe(false);
  clock.time += 1;
  await leases.renew();
  expect(lost.aborted).toBe(true);
});

test("work begins again when its lease is lost, and waits while another process holds it", async () => {
  const file = await createFile();
  const [first, second] = [await launch(file), await launch(file)];
  const listener = createListener();
  const signals: AbortSignal[] = [];
  await first.leases.run("follow", listener, NEVER, async (signal) => {
    signals.push(signal);
    if (signals.length > 1) return;
    await expire(file);
    const taken = await holdLease(second.leases);
    first.clock.time += 1_500;
    await first.leases.renew();
    expect(signal.aborted).toBe(true);
    listener.onLeaseHeld.mockImplementation(() => taken.release());
  });
  expect(signals).toHaveLength(2);
  expect(listener.onLeaseHeld).toHaveBeenCalledExactlyOnceWith({ pid: process.pid });
  expect(first.leases.list()).toEqual([]);
});

test("work ends with the signal of the process, and releases its lease", async () => {
  const file = await createFile();
  const [{ leases }, other] = [await launch(file), await launch(file)];
  const stopping = new AbortController();
  await leases.run("follow", createListener(), stopping.signal, async (signal) => {
    stopping.abort();
    expect(signal.aborted).toBe(true);
  });
  await holdLease(other.leases);
});

test("a failure to read leases is reported once, and again after they could be read", async () => {
  const file = await createFile();
  const [{ leases }, other] = [await launch(file), await launch(file)];
  const connection = closeAfterTest(await openSqlite(file));
  const held = await holdLease(other.leases);
  const listener = createListener();
  const rename = (from: string, to: string) => connection.exec(`alter table ${from} rename to ${to}`);
  rename("leases", "gone");
  listener.onError.mockImplementationOnce(() => rename("gone", "leases"));
  listener.onLeaseHeld.mockImplementationOnce(() => rename("leases", "gone"));
  listener.onError.mockImplementationOnce(() => {
    rename("gone", "leases");
    void held.release();
  });
  await leases.run("follow", listener, NEVER, async () => {});
  expect(listener.onError).toHaveBeenCalledTimes(2);
  expect(listener.onLeaseHeld).toHaveBeenCalledOnce();
});
