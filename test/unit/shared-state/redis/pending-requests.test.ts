import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createPendingRequests } from "../../../../src/shared-state/redis/pending-requests.js";

describe("a request to the reader of another replica", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function setup() {
    const requests = createPendingRequests(() => performance.now());
    const replies: (string | undefined)[] = [];
    const add = (topic = "topic", timeoutMs = 2_000): number => {
      const request = requests.add(topic, timeoutMs);
      void request?.reply.then((reply) => replies.push(reply));
      return request?.id ?? 0;
    };
    return { requests, replies, add };
  }

  test("is given up after 250 ms unless the reader accepts it", async () => {
    const { replies, add } = setup();
    add();
    await vi.advanceTimersByTimeAsync(249);
    expect(replies).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(replies).toEqual([undefined]);
  });

  test("is answered late if the reader says again and again that it works on it", async () => {
    const { requests, replies, add } = setup();
    const id = add();
    for (let waitedMs = 0; waitedMs < 1_500; waitedMs += 200) {
      requests.accept(id);
      await vi.advanceTimersByTimeAsync(200);
    }
    requests.settle(id, "late");
    await vi.advanceTimersByTimeAsync(0);
    expect(replies).toEqual(["late"]);
  });

  test("is given up when an accepting reader falls silent, and after its time limit", async () => {
    const { requests, replies, add } = setup();
    requests.accept(add());
    await vi.advanceTimersByTimeAsync(601);
    expect(replies).toEqual([undefined]);
    const id = add("topic", 300);
    requests.accept(id);
    await vi.advanceTimersByTimeAsync(200);
    requests.accept(id);
    await vi.advanceTimersByTimeAsync(101);
    expect(replies).toEqual([undefined, undefined]);
  });

  test("is given up with all others of its topic, or with all", async () => {
    const { requests, replies, add } = setup();
    for (const topic of ["a", "a", "b"]) requests.accept(add(topic));
    requests.giveUp("a");
    await vi.advanceTimersByTimeAsync(0);
    expect(replies).toHaveLength(2);
    expect(requests.hasAccepted()).toBe(true);
    requests.giveUp();
    await vi.advanceTimersByTimeAsync(0);
    expect(replies).toHaveLength(3);
    expect(requests.hasAccepted()).toBe(false);
  });

  test("is not made while 128 others wait", () => {
    const { requests } = setup();
    const added = Array.from({ length: 200 }, () => requests.add("topic", 1_000));
    expect(added.filter((request) => request !== undefined)).toHaveLength(128);
    requests.giveUp();
    expect(requests.add("topic", 1_000)).toBeDefined();
    requests.giveUp();
  });
});
