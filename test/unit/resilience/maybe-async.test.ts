import { describe, expect, test } from "vitest";
import { catchMaybeAsync, isPromise, type MaybePromise, mapMaybeAsync } from "../../../src/resilience/maybe-async.js";

const increment = (value: number): number => value + 1;
const toMessage = (error: unknown): string => (error as Error).message;

describe("mapMaybeAsync", () => {
  test("maps an available value synchronously", () => {
    expect(mapMaybeAsync(1, increment)).toBe(2);
  });

  test("maps a promise when it resolves", async () => {
    const result = mapMaybeAsync(Promise.resolve(1), increment);
    expect(isPromise(result)).toBe(true);
    expect(await result).toBe(2);
  });

  test("flattens a promise that the callback returns", async () => {
    expect(await mapMaybeAsync(1, async (value): Promise<number> => value + 1)).toBe(2);
  });

  test("calls onError for a rejection of the value, but not for an error of onValue", async () => {
    const fail = (): MaybePromise<string> => {
      throw new Error("callback");
    };
    const rejected: MaybePromise<number> = Promise.reject(new Error("value"));
    expect(await mapMaybeAsync(rejected, String, toMessage)).toBe("value");
    await expect(mapMaybeAsync(Promise.resolve(1), fail, toMessage)).rejects.toThrow("callback");
    expect(() => mapMaybeAsync(1, fail, toMessage)).toThrow("callback");
  });
});

describe("catchMaybeAsync", () => {
  test("returns an available value unchanged", () => {
    expect(catchMaybeAsync("a", toMessage)).toBe("a");
  });

  test("maps a rejection", async () => {
    expect(await catchMaybeAsync(Promise.resolve("a"), toMessage)).toBe("a");
    expect(await catchMaybeAsync<string>(Promise.reject(new Error("down")), toMessage)).toBe("down");
  });
});
