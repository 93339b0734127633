import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createPendingCommands } from "../../../../../src/shared-state/redis/protocol/pending-commands.js";

describe("commands without a reply", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const create = () => createPendingCommands(() => performance.now());

  test("get the replies in their order, also after others have given up", async () => {
    const commands = create();
    const [late, next] = [commands.add(5), commands.add(1_000)];
    await vi.advanceTimersByTimeAsync(6);
    expect(await late).toBeUndefined();
    expect(commands.count()).toBe(2);
    expect([commands.settleOldest("for the first"), commands.settleOldest("for the second")]).toEqual([true, true]);
    expect(await next).toBe("for the second");
    expect(commands.settleOldest("for nobody")).toBe(false);
  });

  test("are slow after 50 ms, until a reply arrives", async () => {
    const commands = create();
    void commands.add(1_000);
    await vi.advanceTimersByTimeAsync(49);
    expect(commands.isSlow()).toBe(false);
    await vi.advanceTimersByTimeAsync(2);
    expect(commands.isSlow()).toBe(true);
    commands.settleOldest("late");
    expect(commands.isSlow()).toBe(false);
  });

  test("are not slow while each gets its reply", async () => {
    const commands = create();
    for (let count = 0; count < 10; count++) {
      void commands.add(1_000);
      await vi.advanceTimersByTimeAsync(20);
      commands.settleOldest("reply");
    }
    expect(commands.isSlow()).toBe(false);
  });

  test("get nothing when the connection is lost", async () => {
    const commands = create();
    const reply = commands.add(1_000);
    commands.dropAll();
    expect(await reply).toBeUndefined();
    expect(commands.oldestSentAt()).toBeUndefined();
  });
});
