import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RedisConnection } from "../../../../src/shared-state/redis/protocol/connection.js";
import type { RedisReply } from "../../../../src/shared-state/redis/protocol/resp.js";
import { createRedisSharedState } from "../../../../src/shared-state/redis/redis-shared-state.js";
import { createSigner } from "../../../../src/shared-state/redis/signing.js";
import { closeAfterTest } from "../../../support/close-after-test.js";

const OTHER_MEMBER = "0123456789abcdef";

interface Call {
  readonly command: string | undefined;
  readonly timeoutMs: number | undefined;
}

/** A Redis in which another member reads every topic. It replies to claims after a time, and to requests never. */
function createFakeConnection(claimMs: number) {
  const calls: Call[] = [];
  const connection: RedisConnection = {
    call([command], timeoutMs) {
      calls.push({ command, timeoutMs });
      return new Promise<RedisReply | undefined>((resolve) => {
        if (command === "EVAL") setTimeout(resolve, claimMs, [OTHER_MEMBER, 1]);
        else setTimeout(resolve, timeoutMs, undefined);
      });
    },
    subscribe() {},
    unsubscribe() {},
    isResponsive: () => true,
    onConnect() {},
    stats: () => ({
      isConnected: true,
      commands: { ok: 0, refused: 0, timed_out: 0, skipped: 0 },
      disconnects: { failed: 0, silent: 0, invalid: 0 },
    }),
    close() {},
  };
  return { connection, calls };
}

function join(connection: RedisConnection) {
  const sharedState = createRedisSharedState({
    connection,
    signer: createSigner("a secret of the tests", Date.now),
    prefix: "test:",
    now: () => performance.now(),
    clock: { toShared: (ms) => ms, toMonotonic: (ms) => ms },
    random: () => 0.5,
    onRefused() {},
  });
  closeAfterTest(sharedState);
  return sharedState.join("topic", { onPublished() {}, onRequest: async () => undefined, onBecomeReader() {} });
}

const findRequests = (calls: readonly Call[]) => calls.filter(({ command }) => command === "PUBLISH");

describe("a request to another replica", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  test("gets all of the 5 ms for Redis once it is known who reads", async () => {
    const { connection, calls } = createFakeConnection(1);
    const topic = join(connection);
    await vi.advanceTimersByTimeAsync(1);
    const reply = topic.request("a request");
    await vi.advanceTimersByTimeAsync(5);
    expect(await reply).toBeUndefined();
    expect(findRequests(calls)).toEqual([{ command: "PUBLISH", timeoutMs: 5 }]);
  });

  test("shares them with the claim of a topic that was joined just now", async () => {
    const { connection, calls } = createFakeConnection(2);
    const reply = join(connection).request("a request");
    await vi.advanceTimersByTimeAsync(5);
    expect(await reply).toBeUndefined();
    expect(findRequests(calls)).toEqual([{ command: "PUBLISH", timeoutMs: 2.5 }]);
  });

  test("is not sent when Redis does not say in half of them who reads", async () => {
    const { connection, calls } = createFakeConnection(1_000);
    const reply = join(connection).request("a request");
    await vi.advanceTimersByTimeAsync(5);
    expect(await reply).toBeUndefined();
    expect(findRequests(calls)).toEqual([]);
  });
});
