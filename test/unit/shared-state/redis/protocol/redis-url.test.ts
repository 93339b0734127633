import { expect, test } from "vitest";
import { parseRedisUrl } from "../../../../../src/shared-state/redis/protocol/redis-url.js";

const plain = { port: 6379, isTls: false, username: undefined, password: undefined, database: 0 };

test.each([
  ["redis://redis.internal", { ...plain, host: "redis.internal" }],
  ["redis://127.0.0.1:6380/", { ...plain, host: "127.0.0.1", port: 6380 }],
  ["redis://[::1]:6380/2", { ...plain, host: "::1", port: 6380, database: 2 }],
  ["redis://:p%40ss@a", { ...plain, host: "a", password: "p@ss" }],
  ["rediss://user:pass@a:1", { host: "a", port: 1, isTls: true, username: "user", password: "pass", database: 0 }],
])("reads %s", (text, target) => {
  expect(parseRedisUrl(text)).toEqual(target);
});

test.each([
  "",
  "redis://",
  "http://a",
  "redis://a/x",
  "redis://a/1/2",
  "redis://a?tls=true",
  "redis://a#b",
  "redis://%@a",
])("refuses %j", (text) => {
  expect(parseRedisUrl(text)).toBeUndefined();
});
