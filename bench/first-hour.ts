import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProjectFolder } from "../devnet/cache/project-folders.js";
import { browserPath, launchBrowser } from "../test/support/browser/launch-browser.js";
import { timedGet } from "./support/timed-get.js";

// Measures what a new user waits for, in a fresh clone of what is committed: the first answer after `npm ci && npm run demo`,
// the first of a second start, and the first content of the demo's page.

const MAX_FIRST_ANSWER_SECONDS = 60;
const MAX_SECOND_START_SECONDS = 5;
const MAX_FIRST_CONTENT_SECONDS = 1;
const PAGE_LOADS = 5;
const MAX_WAIT_MS = 10 * 60_000;

const QUOTE = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";

interface Demo {
  readonly url: string;
  /** From the command to the first answer. */
  readonly seconds: number;
  stop(): Promise<void>;
}

/** Runs a shell command that starts the demo, and asks it for a quote as soon as it prints its address. */
async function startDemo(command: string, folder: string): Promise<Demo> {
  const began = performance.now();
  // What npm has set for this program would apply to the clone.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?:package|lifecycle|config_local)/.test(name),
  );
  const child = spawn("bash", ["--norc", "-c", command], {
    ...{ cwd: folder, env: { ...Object.fromEntries(inherited), PORT: "0", METRICS_PORT: "0" } },
    // A group of its own, so that what npm has started ends with it.
    ...{ stdio: ["ignore", "pipe", "inherit"], detached: true },
  });
  try {
    const url = await waitForAddress(child);
    await timedGet(`${url}${QUOTE}`);
    return { url, seconds: (performance.now() - began) / 1000, stop: () => endGroup(child) };
  } catch (error) {
    await endGroup(child);
    throw error;
  }
}

function waitForAddress(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk) => {
      text += chunk;
      const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
      if (address !== undefined) resolve(address);
    });
    child.once("exit", (code) => reject(new Error(`the demo ended with ${code}: ${text}`)));
    setTimeout(() => reject(new Error(`no demo: ${text}`)), MAX_WAIT_MS).unref();
  });
}

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const ended = once(child, "exit");
  process.kill(-child.pid, "SIGTERM");
  await ended;
}

const READ_FIRST_CONTENT = `new Promise((resolve) => new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) if (name === "first-contentful-paint") resolve(startTime);
}).observe({ type: "paint", buffered: true }))`;

/** Returns the seconds from each navigation to the first content, with an empty cache each time, smallest first. */
async function measureFirstContents(url: string): Promise<readonly number[]> {
  const browser = await launchBrowser();
  try {
    const seconds: number[] = [];
    for (let count = 0; count < PAGE_LOADS; count++) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(url);
      seconds.push(((await page.evaluate(READ_FIRST_CONTENT)) as number) / 1000);
      await context.close();
    }
    return seconds.sort((one, other) => one - other);
  } finally {
    await browser.close();
  }
}

function print(name: string, seconds: number, goal: number, note = ""): void {
  const verdict = seconds < goal ? "" : ", missed";
  console.log(`${name.padEnd(52)} ${seconds.toFixed(1).padStart(6)} s (goal: < ${goal} s${verdict})${note}`);
}

const folder = await mkdtemp(join(tmpdir(), "hop-gateway-clone-"));
try {
  execFileSync("git", ["clone", "--quiet", "--no-hardlinks", findProjectFolder(), folder]);
  const first = await startDemo("npm ci && npm run demo", folder);
  print("npm ci && npm run demo, to the first answer", first.seconds, MAX_FIRST_ANSWER_SECONDS);
  await first.stop();
  const second = await startDemo("npm run demo", folder);
  try {
    print("npm run demo again, to the first answer", second.seconds, MAX_SECOND_START_SECONDS);
    if (browserPath === undefined) console.log("first content: not measured, Chromium is not installed");
    else {
      const contents = await measureFirstContents(second.url);
      const note = `, ${contents[0]?.toFixed(2)} to ${contents.at(-1)?.toFixed(2)} s`;
      const median = contents[PAGE_LOADS >> 1] ?? Number.NaN;
      print("the demo's page, to the first content (median of 5)", median, MAX_FIRST_CONTENT_SECONDS, note);
    }
  } finally {
    await second.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
