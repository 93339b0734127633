import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { limitBacklog, MAX_TEXT_CHARS, type ToHub } from "../../../src/shared-state/channel.js";
import { createMachineClock } from "../../../src/shared-state/cluster-ipc.js";
import { HUB_SILENT_MS, REQUEST_TIMEOUT_MS } from "../../../src/shared-state/member.js";
import type { SharedTopic } from "../../../src/shared-state/shared-state.js";
import {
  createSharedProcesses,
  type SharedProcess,
  type SharedProcesses,
} from "../../support/stubs/shared-processes.js";

let processes: SharedProcesses;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
  processes = createSharedProcesses();
});
afterEach(() => {
  processes.close();
  vi.useRealTimers();
});

interface Participant extends SharedProcess {
  readonly topic: SharedTopic;
  readonly published: string[];
  readonly requests: string[];
  /** What it replies; undefined: never. */
  answer: Promise<string | undefined>;
  becameReader: number;
}

function start(name = "prices"): Participant {
  const started = processes.start();
  const participant: Participant = {
    ...started,
    topic: started.sharedState.join(name, {
      onPublished(message) {
        if (message === "garbage") throw new TypeError("not understood");
        participant.published.push(message);
      },
      onRequest(message) {
        participant.requests.push(message);
        return participant.answer;
      },
      onBecomeReader() {
        participant.becameReader += 1;
      },
    }),
    published: [],
    requests: [],
    answer: Promise.resolve("answer"),
    becameReader: 0,
  };
  return participant;
}

const settle = () => vi.advanceTimersByTimeAsync(0);
const findReaders = (participants: readonly Participant[]): number[] =>
  participants.flatMap(({ topic }, index) => (topic.isReader() ? [index] : []));

describe("the reader of a topic", () => {
  test("is the first process that joins; it answers the others and reads for itself", async () => {
    const all = [start(), start(), start()];
    await settle();
    expect(findReaders(all)).toEqual([0]);
    expect(await all[1]?.topic.request("ask")).toBe("answer");
    expect(all.map(({ requests }) => requests)).toEqual([["ask"], [], []]);
    expect(await all[0]?.topic.request("ask")).toBeUndefined();
    expect(all[0]?.becameReader).toBe(1);
  });

  test("is chosen for each topic, so that the topics spread over the processes", async () => {
    const [first, second] = [processes.start(), processes.start()];
    const handlers = { onPublished() {}, onRequest: async () => undefined, onBecomeReader() {} };
    const topics = ["a", "b"].map((name) => [
      first.sharedState.join(name, handlers),
      second.sharedState.join(name, handlers),
    ]);
    await settle();
    const third = processes.start();
    for (const name of ["a", "b"]) third.sharedState.join(name, handlers);
    await settle();
    expect(topics.map(([mine]) => mine?.isReader())).toEqual([true, true]);
    first.exit();
    await settle();
    expect(second.sharedState.stats().readTopics).toEqual(["a"]);
    expect(third.sharedState.stats().readTopics).toEqual(["b"]);
  });

  test("is replaced at once when it exits, and what it has not answered goes to the next one", async () => {
    const all = [start(), start(), start()];
    await settle();
    const [first, second, third] = all as [Participant, Participant, Participant];
    first.answer = new Promise(() => {});
    const pending = third.topic.request("ask");
    await settle();
    first.exit();
    await settle();
    expect(findReaders([second, third])).toEqual([0]);
    expect(await pending).toBe("answer");
    expect(second.requests).toEqual(["ask"]);
  });

  test("is replaced within two seconds when it hangs; later it knows that it is not the reader any more", async () => {
    const all = [start(), start()];
    await settle();
    const [first, second] = all as [Participant, Participant];
    first.stop();
    const pending = second.topic.request("ask");
    const stoppedAt = Date.now();
    while (!second.topic.isReader() && Date.now() - stoppedAt < 10_000) await vi.advanceTimersByTimeAsync(50);
    expect(Date.now() - stoppedAt).toBeLessThanOrEqual(1_500);
    // Nobody else could answer it.
    expect(await pending).toBeUndefined();
    await vi.advanceTimersByTimeAsync(HUB_SILENT_MS);
    // Before it has read any message.
    expect(first.topic.isReader()).toBe(false);
    first.resume();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(findReaders(all)).toEqual([1]);
    expect(await first.topic.request("ask")).toBe("answer");
  });

  test("is the same process again when the only one has hung", async () => {
    const only = start();
    await settle();
    only.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(only.topic.isReader()).toBe(false);
    only.resume();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(only.topic.isReader()).toBe(true);
  });

  test("stays while all are responsive, and after a pause of the process that chooses it", async () => {
    const all = [start(), start()];
    await vi.advanceTimersByTimeAsync(60_000);
    expect(findReaders(all)).toEqual([0]);
    // The clock advances, and nothing has run meanwhile.
    vi.setSystemTime(Date.now() + 30_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(findReaders(all)).toEqual([0]);
    expect(all[0]?.becameReader).toBe(1);
  });
});

test("a process that starts slowly is not reported as hanging; one that has started is", async () => {
  const onSuspend = vi.fn();
  // Its messages wait until it has loaded its code.
  const started = processes.start(0, onSuspend);
  started.stop();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(onSuspend).not.toHaveBeenCalled();
  started.resume();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(onSuspend).not.toHaveBeenCalled();
  started.stop();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(onSuspend).toHaveBeenCalledOnce();
});

describe("a request", () => {
  test("is unanswered at once without a reader, and when the reader has no answer", async () => {
    const [first, second] = [start(), start()];
    await settle();
    first.answer = Promise.resolve(undefined);
    expect(await second.topic.request("ask")).toBeUndefined();
    first.answer = Promise.reject(new Error("the chain fails"));
    expect(await second.topic.request("ask")).toBeUndefined();
    first.answer = Promise.resolve("x".repeat(MAX_TEXT_CHARS + 1));
    expect(await second.topic.request("ask")).toBeUndefined();
    expect(second.sharedState.stats().messages).toMatchObject({ answered: 0, unanswered: 3 });
  });

  test("is given up after two seconds when the reader lives and does not answer", async () => {
    const [first, second] = [start(), start()];
    await settle();
    first.answer = new Promise(() => {});
    let reply: string | undefined = "pending";
    void second.topic.request("ask").then((result) => {
      reply = result;
    });
    await vi.advanceTimersByTimeAsync(REQUEST_TIMEOUT_MS - 1);
    expect(reply).toBe("pending");
    await vi.advanceTimersByTimeAsync(1);
    expect(reply).toBeUndefined();
    expect(first.topic.isReader()).toBe(true);
  });

  test("is not sent while the hub is out of reach, and at most 128 wait", async () => {
    const [first, second] = [start(), start()];
    await settle();
    first.answer = new Promise(() => {});
    const many = Array.from({ length: 500 }, () => second.topic.request("ask"));
    await settle();
    expect(first.requests).toHaveLength(128);
    expect(second.sharedState.stats().messages.unanswered).toBe(372);
    await vi.advanceTimersByTimeAsync(REQUEST_TIMEOUT_MS);
    await Promise.all(many);
    processes.close();
    await vi.advanceTimersByTimeAsync(HUB_SILENT_MS);
    expect(await second.topic.request("ask")).toBeUndefined();
    expect(first.requests).toHaveLength(128);
  });
});

describe("a published value", () => {
  test("reaches all others of the topic", async () => {
    const all = [start(), start(), start(), start("another topic")];
    await settle();
    all[1]?.topic.publish("value");
    await settle();
    expect(all.map(({ published }) => published)).toEqual([["value"], [], ["value"], []]);
    expect(all[1]?.sharedState.stats().messages).toMatchObject({ published: 1, received: 0 });
  });

  test("that is not understood or too long is counted and harms nobody", async () => {
    const [first, second] = [start(), start()];
    await settle();
    first.topic.publish("garbage");
    first.topic.publish("x".repeat(MAX_TEXT_CHARS + 1));
    await settle();
    expect(second.sharedState.stats().messages).toMatchObject({ received: 0, dropped: 1 });
    expect(first.sharedState.stats().messages).toMatchObject({ published: 1, dropped: 1 });
  });

  test("reaches the others also if the hub's observer does not understand it", async () => {
    const onPublish = vi.fn(() => {
      throw new TypeError("not understood");
    });
    processes.close();
    processes = createSharedProcesses(Date.now, { onPublish });
    const [first, second] = [start(), start()];
    await settle();
    first.topic.publish("value");
    await settle();
    expect(onPublish).toHaveBeenCalledExactlyOnceWith("prices", "value");
    expect(second.published).toEqual(["value"]);
  });

  test("is not sent to a process that hangs", async () => {
    const [first, second] = [start(), start()];
    await settle();
    second.stop();
    await vi.advanceTimersByTimeAsync(2_000);
    first.topic.publish("value");
    await settle();
    second.resume();
    await settle();
    expect(second.published).toEqual([]);
  });
});

test("limits what waits to be written to a process that does not read", () => {
  const written: (() => void)[] = [];
  const send = limitBacklog<ToHub>((_, onWritten) => written.push(onWritten));
  const message: ToHub = { type: "shared-state", kind: "publish", topic: "prices", text: "x".repeat(MAX_TEXT_CHARS) };
  const accepted = Array.from({ length: 100 }, () => send(message)).filter(Boolean).length;
  expect(accepted).toBe(8);
  for (const onWritten of written) {
    onWritten();
    onWritten();
  }
  expect(send(message)).toBe(true);
});

test("the clock of a machine agrees with the monotonic clock of the process", () => {
  vi.useRealTimers();
  const clock = createMachineClock();
  const sharedNow = Number(process.hrtime.bigint()) / 1e6;
  expect(Math.abs(clock.toMonotonic(sharedNow) - (performance.timeOrigin + performance.now()))).toBeLessThan(1_000);
  expect(clock.toMonotonic(clock.toShared(123_456))).toBeCloseTo(123_456, 2);
});

test("the clock of a machine is right although the process was suspended while it was created", () => {
  const time = { ms: 1_000, readings: 0 };
  // Before the second reading in the first pass, and before the first one in the third.
  const readShared = (): number => {
    time.readings += 1;
    if (time.readings === 2 || time.readings === 5) time.ms += 100;
    return time.ms;
  };
  const clock = createMachineClock(() => time.ms + 1_795_000_000_000, readShared);
  expect(clock.toShared(1_795_000_005_000)).toBe(5_000);
});
