import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { useGateway } from "../../support/service/in-process-gateway.js";

// Runs the commands of the README and of the pages about the operations, with another port, and compares the responses with the
// printed ones.

const pages = ["README.md", "docs/quotes.md", "docs/transfers.md", "docs/moving.md"].map((name) =>
  readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8"),
);
const ADDRESS = "http://127.0.0.1:8000";
const blocks = [...pages.join("\n").matchAll(/```(\w*)\n([\s\S]*?)```/g)].map(([, language = "", text = ""]) => ({
  language,
  text,
}));
const run = promisify(execFile);

const gateway = useGateway();
beforeAll(() => {
  // A quote's deadline is in the calldata whose gas is estimated, and a zero byte costs less: a second in which the
  // deadline has none, so that the fee is the README's to the last digit.
  const sevenDays = 7 * 24 * 3600;
  const deadline = (Math.floor(Date.now() / 1000) + sevenDays) | 0x0101;
  vi.useFakeTimers({ toFake: ["Date"], now: (deadline - sevenDays) * 1000 });
});
afterAll(() => void vi.useRealTimers());

/** Times are those of the moment at which a quote was asked for and the demo's past was made. */
function withoutTimes(json: string): unknown {
  return JSON.parse(json, (key, value) =>
    /^(deadline|destinationDeadline|timestamp)$/.test(key) ? Math.sign(value) : value,
  );
}

const curls = blocks.flatMap(({ text }, index) => {
  const url = /^curl '([^']+)'\n$/.exec(text)?.[1];
  const answer = blocks[index + 1];
  return url !== undefined && answer?.language === "json" ? [{ url, answer: answer.text }] : [];
});

test("every operation has a command with its response", () => {
  expect(curls).toHaveLength(5);
});

test.each(curls)("curl $url", async ({ url, answer }) => {
  const { stdout } = await run("curl", ["-sS", url.replace(ADDRESS, gateway.url)]);
  expect(withoutTimes(stdout)).toEqual(withoutTimes(answer));
  expect(Object.keys(JSON.parse(stdout))).toEqual(Object.keys(JSON.parse(answer)));
});

test("the TypeScript client", async () => {
  const example = readFileSync(new URL("../../../examples/quote.ts", import.meta.url), "utf8");
  expect(blocks.find(({ language }) => language === "ts")?.text).toBe(example);
  expect(
    example
      .trim()
      .split("\n")
      .filter((line) => line !== "").length,
  ).toBeLessThanOrEqual(10);
  const print = vi.spyOn(console, "log").mockImplementation(() => {});
  const argv = process.argv;
  process.argv = [...argv.slice(0, 2), gateway.url];
  try {
    await import("../../../examples/quote.js");
    expect(print).toHaveBeenCalledWith(blocks.find(({ language }) => language === "text")?.text.trim());
  } finally {
    process.argv = argv;
    print.mockRestore();
  }
});
