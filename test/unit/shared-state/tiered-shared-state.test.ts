import { describe, expect, test, vi } from "vitest";
import type { RedisSharedState } from "../../../src/shared-state/redis/redis-shared-state.js";
import type { SharedState, TopicHandlers } from "../../../src/shared-state/shared-state.js";
import { combineSharedState } from "../../../src/shared-state/tiered-shared-state.js";

const NO_MESSAGES = { published: 0, received: 0, answered: 0, unanswered: 0, dropped: 0 };

/** A transport that records what a process sends and says whether the process reads. */
function createTransport(name: string) {
  const state = { isReader: false, published: [] as string[], handlers: undefined as TopicHandlers | undefined };
  const join = (_: string, handlers: TopicHandlers) => {
    state.handlers = handlers;
    return {
      isReader: () => state.isReader,
      publish: (text: string) => void state.published.push(text),
      request: async (text: string) => `${name} answers ${text}`,
    };
  };
  const sharedState: SharedState = {
    clock: { toShared: (time) => time, toMonotonic: (time) => time },
    join,
    observeReader() {},
    stats: () => ({
      topics: ["topic"],
      readTopics: state.isReader ? ["topic"] : [],
      messages: { ...NO_MESSAGES, published: state.published.length },
    }),
  };
  return { state, sharedState, join };
}

function setup() {
  const local = createTransport("the machine");
  const remote = createTransport("Redis");
  let isActive: () => boolean = () => false;
  const redis: RedisSharedState = {
    ...remote.sharedState,
    joinWhile(topic, handlers, active) {
      isActive = active;
      return remote.join(topic, handlers);
    },
    close: async () => {},
  };
  const combined = combineSharedState(local.sharedState, redis);
  const onPublished = vi.fn();
  const topic = combined.join("topic", { onPublished, onRequest: async () => undefined, onBecomeReader() {} });
  return { local: local.state, remote: remote.state, combined, topic, onPublished, isActive: () => isActive() };
}

describe("a process that reads for its machine", () => {
  test("asks other machines, and is the only one of its machine that uses Redis", async () => {
    const { local, topic, isActive } = setup();
    expect(isActive()).toBe(false);
    local.isReader = true;
    expect(isActive()).toBe(true);
    expect(await topic.request("a")).toBe("Redis answers a");
  });

  test("reads for all only if it also reads for the other machines", () => {
    const { local, remote, topic, combined } = setup();
    local.isReader = true;
    expect(topic.isReader()).toBe(false);
    expect(combined.stats().readTopics).toEqual([]);
    remote.isReader = true;
    expect(topic.isReader()).toBe(true);
    expect(combined.stats().readTopics).toEqual(["topic"]);
  });

  test("hands on to its machine what other machines publish, and to both what it reads", () => {
    const { local, remote, topic, onPublished, combined } = setup();
    local.isReader = true;
    remote.handlers?.onPublished("from afar");
    expect(onPublished).toHaveBeenCalledWith("from afar");
    expect(local.published).toEqual(["from afar"]);
    topic.publish("read here");
    expect([local.published, remote.published]).toEqual([["from afar", "read here"], ["read here"]]);
    expect(combined.stats().messages.published).toBe(3);
  });

  test("hands on nothing that it does not understand", () => {
    const { local, remote, onPublished } = setup();
    local.isReader = true;
    onPublished.mockImplementation(() => {
      throw new TypeError("not a state");
    });
    expect(() => remote.handlers?.onPublished("nonsense")).toThrow("not a state");
    expect(local.published).toEqual([]);
  });
});

test("a process that does not read for its machine asks and tells only those of its machine", async () => {
  const { local, remote, topic } = setup();
  remote.isReader = true;
  expect(topic.isReader()).toBe(false);
  expect(await topic.request("a")).toBe("the machine answers a");
  topic.publish("read here");
  expect([local.published, remote.published]).toEqual([["read here"], []]);
});
