import { describe, expect, test } from "vitest";
import {
  type CustomHost,
  CustomHostLimits,
  MAX_CONNECTIONS,
  MAX_CONNECTIONS_PER_ADDRESS,
  MAX_CONNECTIONS_PER_NAME,
  MAX_REQUESTS_PER_SECOND,
} from "../../../../src/chain/custom-endpoints/host-limits.js";
import { never } from "../support/rpc-node-stub.js";

function create() {
  const clock = { ms: 0 };
  const waits: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    waits.push(ms);
  };
  return { clock, waits, limits: new CustomHostLimits({ now: () => clock.ms, sleep }) };
}

/** Starts to acquire connections, each for another caller unless one is given. Returns the functions that release them. */
async function acquireMany(
  { limits }: ReturnType<typeof create>,
  count: number,
  hostAt: (index: number) => CustomHost,
  caller?: string,
): Promise<(() => void)[]> {
  const releases: (() => void)[] = [];
  for (let index = 0; index < count; index += 1) {
    void limits
      .acquireConnection(caller ?? `caller ${index}`, hostAt(index), never)
      .then((release) => releases.push(release));
  }
  await new Promise((resolve) => setImmediate(resolve));
  return releases;
}

const host = (name: string, ...addresses: string[]): CustomHost => ({ name, addresses });

describe("connections", () => {
  test("to one name are limited over all callers", async () => {
    const created = create();
    const releases = await acquireMany(created, 100, (index) => host("rpc.example", `192.0.2.${index}`));
    expect(releases).toHaveLength(MAX_CONNECTIONS_PER_NAME);
  });

  test("to one address are limited over all names and callers", async () => {
    const created = create();
    const releases = await acquireMany(created, 100, (index) =>
      host(`n${index}.example`, `2001:db8::${index}`, "192.0.2.1"),
    );
    expect(releases).toHaveLength(MAX_CONNECTIONS_PER_ADDRESS);
  });

  test("are limited over all hosts, and a caller gets half at most", async () => {
    const created = create();
    const differ = (index: number): CustomHost => host(`n${index}.example`, `192.0.2.${index}`);
    expect(await acquireMany(created, 100, differ, "a")).toHaveLength(MAX_CONNECTIONS / 2);
    const others = (index: number): CustomHost => host(`m${index}.example`, `198.51.100.${index}`);
    expect(await acquireMany(created, 100, others)).toHaveLength(MAX_CONNECTIONS / 2);
  });

  test("are granted in the order of arrival when one is released, past those whose host is full", async () => {
    const created = create();
    const [release] = await acquireMany(created, MAX_CONNECTIONS_PER_ADDRESS, (index) =>
      host(`n${index}`, "192.0.2.1"),
    );
    const granted: string[] = [];
    const wait = (name: string, address: string): void =>
      void created.limits.acquireConnection(name, host(name, address), never).then(() => granted.push(name));
    wait("first", "192.0.2.1");
    wait("second", "192.0.2.1");
    wait("other", "192.0.2.2");
    await new Promise((resolve) => setImmediate(resolve));
    expect(granted).toEqual(["other"]);
    release?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(granted).toEqual(["other", "first"]);
  });

  test("are not granted to those that have left", async () => {
    const created = create();
    const full = (): CustomHost => host("rpc.example");
    const [release] = await acquireMany(created, MAX_CONNECTIONS_PER_NAME, full);
    const caller = new AbortController();
    const waiting = created.limits.acquireConnection("late", full(), caller.signal);
    caller.abort(new Error("has left"));
    await expect(waiting).rejects.toThrow("has left");
    release?.();
    expect(await acquireMany(created, 3, full)).toHaveLength(1);
    await expect(created.limits.acquireConnection("late", full(), caller.signal)).rejects.toThrow("has left");
  });
});

describe("requests", () => {
  const overloaded = { reason: "OVERLOADED", retryAfterSeconds: expect.any(Number) };

  test("to one address are limited over all names and callers", async () => {
    const { limits, waits } = create();
    const send = (index: number): Promise<void> =>
      limits.acquireRequest(`caller ${index}`, host(`n${index}.example`, "192.0.2.1"), never);
    for (let index = 0; index < MAX_REQUESTS_PER_SECOND; index += 1) await send(index);
    expect(waits).toEqual([]);
    // One second's worth may wait.
    for (let index = 0; index < MAX_REQUESTS_PER_SECOND; index += 1) await send(index);
    expect(waits).toHaveLength(MAX_REQUESTS_PER_SECOND);
    await expect(send(0)).rejects.toMatchObject(overloaded);
  });

  test("of one caller leave half to others, and are possible again later", async () => {
    const { limits, clock } = create();
    const target = host("rpc.example", "192.0.2.1");
    const send = (caller: string): Promise<void> => limits.acquireRequest(caller, target, never);
    for (let index = 0; index < MAX_REQUESTS_PER_SECOND; index += 1) await send("greedy");
    await expect(send("greedy")).rejects.toMatchObject(overloaded);
    await send("other");
    clock.ms += 1_000;
    await send("greedy");
  });

  test("count twenty times for their caller, and not for others, if the responses are too complex", async () => {
    const { limits, waits } = create();
    const target = host("rpc.example", "192.0.2.1");
    const send = async (caller: string): Promise<void> => {
      await limits.acquireRequest(caller, target, never);
      limits.countComplexResponse(caller, target);
    };
    let sent = 0;
    await expect(async () => {
      for (; ; sent += 1) await send("nonsense");
    }).rejects.toMatchObject(overloaded);
    // Half of the requests per second at once, and as many for which it waits.
    expect(sent).toBe(MAX_REQUESTS_PER_SECOND / 20);
    const before = waits.length;
    await send("other");
    expect(waits).toHaveLength(before);
  });
});
