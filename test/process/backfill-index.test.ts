import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { acquireLease } from "../../src/transfers/index/store/lease.js";
import { openIndex } from "../../src/transfers/index/store/open-index.js";
import { backfillIndex } from "../../src/transfers/index/sync/index-sync.js";
import { createChainStub, serveChains } from "../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import {
  mainnetNetwork,
  transferSentEvent,
  withdrawalBondedEvent,
} from "../unit/transfers/index/support/hop-events.js";
import { readAllRows } from "../unit/transfers/index/support/sync-harness.js";

// The command as a process of its own, so that it can be killed.

const project = fileURLToPath(new URL("../..", import.meta.url));
const out = `${project}node_modules/.cache/index-history-test`;
const folder = useTemporaryFolder();
const events = 100_000;

/** Optimism with two events in each block; the other chains have none. */
const stubs = [...mainnetNetwork.chains.values()].map(({ slug, chainId }) => {
  const stub = createChainStub({ slug, chainId, head: slug === "optimism" ? events / 2 + 100 : 100 });
  stub.finalized = stub.head;
  for (let number = 1; slug === "optimism" && number <= events / 2; number++) {
    const leg = { from: "optimism", to: "optimism" };
    stub.setBlock(number, [transferSentEvent(`${number}`, leg), withdrawalBondedEvent(`${number}`, leg)]);
  }
  return stub;
});

let onRequest = (_slug: string): void => {};
let server: Awaited<ReturnType<typeof serveChains>>;
beforeAll(async () => {
  server = await serveChains(stubs, (slug) => onRequest(slug));
  const args = ["tsc", "-p", "tsconfig.build.json", "--noCheck", "--outDir", out];
  await promisify(execFile)("npx", [...args, "--tsBuildInfoFile", `${out}/.tsbuildinfo`], { cwd: project });
});
afterAll(() => server.close());

const started: ChildProcess[] = [];
afterEach(() => {
  onRequest = () => {};
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

function launch(file: string | undefined, args: readonly string[]) {
  const urls = stubs.map(({ client: { slug } }) => [`RPC_URL_${slug.toUpperCase()}`, server.urlOf(slug)] as const);
  const child = spawn(process.execPath, [`${out}/src/main.js`, "index", ...args], {
    env: { PATH: process.env.PATH, INDEX: file === undefined ? "" : `sqlite:${file}`, ...Object.fromEntries(urls) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      text += chunk;
    });
  }
  const ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | string);
  return { child, ended, said: () => text };
}

/** What a run holds that nothing disturbed. */
async function cleanRun(file: string) {
  const index = await openIndex(file, mainnetNetwork);
  await backfillIndex({
    index,
    network: mainnetNetwork,
    chains: {
      getClient: (slug) => stubs.find(({ client }) => client.slug === slug)?.client as never,
      hasCustomEndpoint: () => false,
    },
    blockAt: async () => 100,
    from: { timestamp: 0, blocks: new Map([["optimism", 0]]) },
    sleep: (ms) => sleep(ms),
    pid: process.pid,
    events: { onError: () => {}, onLeaseHeld: () => {}, onBackfillProgress: () => {} },
    signal: new AbortController().signal,
  });
  index.close();
  return readAllRows(file);
}

const all = ["--from", "optimism:0"];

test("killed fifty times at any point it ends with what a run has that nobody killed", async () => {
  const file = `${folder()}/killed`;
  let midway = 0;
  for (let kill = 0; kill < 50; kill++) {
    const run = launch(file, all);
    let left = 1 + Math.floor(Math.random() * 70);
    onRequest = (slug) => {
      if (slug === "optimism") left -= 1;
      // What follows a request may be the end of its transaction.
      if (left === 0) setTimeout(() => run.child.kill("SIGKILL"), Math.random() * 20);
    };
    if ((await run.ended) === "SIGKILL") midway += 1;
  }
  expect(midway).toBe(50);
  const sentSoFar = (await readAllRows(file)).sends.length;
  expect(sentSoFar).toBeGreaterThan(0);
  expect(sentSoFar).toBeLessThan(events / 2);
  onRequest = () => {};
  const last = launch(file, all);
  expect(await last.ended).toBe(0);
  const [killed, clean] = [await readAllRows(file), await cleanRun(`${folder()}/clean`)];
  expect(clean.sends).toHaveLength(events / 2);
  expect(clean.deliveries).toHaveLength(events / 2);
  for (const table of ["cursors", "blocks", "sends", "deliveries"] as const) {
    expect(killed[table].length, table).toBe(clean[table].length);
    // Row by row: a difference of two texts of a hundred thousand rows would never be printed.
    for (const [index, row] of clean[table].entries()) {
      if (JSON.stringify(killed[table][index]) !== JSON.stringify(row)) expect(killed[table][index]).toEqual(row);
    }
  }
});

describe("the command", () => {
  test("ends on Ctrl-C with what it has, says so, and goes on when started again", async () => {
    const file = `${folder()}/interrupted`;
    const first = launch(file, all);
    let requests = 0;
    onRequest = () => {
      requests += 1;
      if (requests === 100) first.child.kill("SIGINT");
    };
    expect(await first.ended).toBe(1);
    expect(first.said()).toContain("start it again to go on");
    const { cursors, sends } = await readAllRows(file);
    expect(sends.length).toBeGreaterThan(0);
    expect(sends.length).toBeLessThan(events / 2);
    const before = JSON.stringify(cursors);
    const second = launch(file, ["--from", "optimism:40000"]);
    expect(await second.ended, second.said()).toBe(0);
    expect(second.said()).toMatch(/optimism: (\d+)\/\1 blocks, \d+ events, \d+ blocks\/s, done\n/);
    expect(second.said()).toContain("the index is complete\n");
    expect(JSON.stringify((await readAllRows(file)).cursors)).not.toBe(before);
  });

  test("says who fills the index already, and takes over when that one ends", async () => {
    const file = `${folder()}/held`;
    const lease = await acquireLease(`${file}.history.optimism`, process.pid);
    if (!("release" in lease)) throw new Error("the lease is held");
    const run = launch(file, ["--from", "optimism:50000"]);
    await expect
      .poll(run.said, { timeout: 10_000 })
      .toContain(`optimism: process ${process.pid} fills this part already`);
    lease.release();
    expect(await run.ended).toBe(0);
  });

  test.each([
    [["--help"], 0, /^Fills the transfer index/],
    [["--form", "2024-01-01"], 2, /^hop-gateway: Unknown option '--form'; hop-gateway --help/],
    [["--from", "yesterday"], 2, /^hop-gateway: --from must be a date/],
    [["--from", "nowhere:1"], 2, /^hop-gateway: --from must be a date/],
  ])("%j ends with %i", async (args, code, message) => {
    const run = launch(`${folder()}/arguments`, args);
    expect(await run.ended).toBe(code);
    expect(run.said()).toMatch(message);
  });

  test("needs a file", async () => {
    const run = launch(undefined, []);
    expect(await run.ended).toBe(1);
    expect(run.said()).toContain("INDEX is not sqlite:<file>");
  });
});
