import { describe, expect, test, vi } from "vitest";
import { RateLimiter } from "../../../../src/http/admission/rate-limiter.js";
import type { RequestContext } from "../../../../src/http/request/request-context.js";

const LIMIT = 10;
const WINDOW_MS = 60_000;

/** A Redis that all processes of a test share. */
function createRedis() {
  const counts = new Map<string, number>();
  const state = { isReachable: true, keys: [] as string[], scripts: [] as string[] };
  const redis = {
    async eval(script: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }) {
      const [key = ""] = keys;
      state.keys.push(key);
      state.scripts.push(script);
      if (!state.isReachable) throw new Error("not in time");
      const count = (counts.get(key) ?? 0) + Number(args[0]);
      counts.set(key, count);
      return [count, WINDOW_MS];
    },
  };
  return { state, redis };
}

function createProcess({ redis }: ReturnType<typeof createRedis>, windowMs = WINDOW_MS) {
  const onFailure = vi.fn();
  const limiter = new RateLimiter({ requests: LIMIT, windowMs, onFailure, redis });
  const call = async (caller = "a"): Promise<{ isAdmitted: boolean; headers: readonly string[] }> => {
    const context = { caller, rateLimitHeaders: [] as readonly string[] } as RequestContext;
    return { isAdmitted: (await limiter.count(context)) === undefined, headers: context.rateLimitHeaders };
  };
  return { call, onFailure };
}

async function countAdmitted(calls: readonly Promise<{ isAdmitted: boolean }>[]): Promise<number> {
  return (await Promise.all(calls)).filter(({ isAdmitted }) => isAdmitted).length;
}

describe("a limit over three processes", () => {
  test("admits as many calls as one does, and states what is left", async () => {
    const shared = createRedis();
    const processes = [1, 2, 3].map(() => createProcess(shared));
    const { headers } = await createProcess(shared).call();
    expect(headers).toEqual(["ratelimit-limit", "10", "ratelimit-remaining", "9", "ratelimit-reset", "60"]);
    const calls = processes.flatMap(({ call }) => Array.from({ length: 10 }, () => call()));
    expect(await countAdmitted(calls)).toBe(LIMIT - 1);
    expect(await countAdmitted(processes.map(({ call }) => call("b")))).toBe(3);
  });

  test("asks no more for a caller that is over the limit until its window ends", async () => {
    const shared = createRedis();
    const { call } = createProcess(shared);
    for (let count = 0; count <= LIMIT; count++) await call();
    const asked = shared.state.keys.length;
    const { isAdmitted, headers } = await call();
    expect(isAdmitted).toBe(false);
    expect(headers).toEqual(expect.arrayContaining(["ratelimit-remaining", "0", "ratelimit-reset", "60"]));
    expect(shared.state.keys).toHaveLength(asked);
  });

  test("is that of each process while Redis does not count, and no call fails", async () => {
    const shared = createRedis();
    const { call, onFailure } = createProcess(shared);
    shared.state.isReachable = false;
    expect(await countAdmitted(Array.from({ length: 30 }, () => call()))).toBe(LIMIT);
    shared.state.isReachable = true;
    expect((await call()).isAdmitted).toBe(true);
    expect(onFailure).not.toHaveBeenCalled();
  });

  test.each([250, 1_500, 60_000])("counts in windows of %i ms", async (windowMs) => {
    const shared = createRedis();
    await createProcess(shared, windowMs).call("a");
    expect(shared.state.keys).toEqual([`hop-gateway:limit:${windowMs}:a`]);
    expect(shared.state.scripts[0]).toContain(`'PX', ${windowMs}, 'NX'`);
  });

  test("forgets callers above 100,000", async () => {
    // The window of the first caller must not end before the last one has called.
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    const asked: string[] = [];
    const redis = {
      async eval(_: string, { keys }: { keys: string[] }) {
        asked.push(...keys);
        return [LIMIT + 1, WINDOW_MS];
      },
    };
    const { call } = createProcess({ redis } as ReturnType<typeof createRedis>);
    for (let index = 0; index < 100_001; index++) await call(`c${index}`);
    asked.length = 0;
    await call("c1");
    expect(asked).toEqual([]);
    await call("c0");
    expect(asked).toHaveLength(1);
  });
});
