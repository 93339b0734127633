import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isFullEffort } from "../support/effort.js";
import { fillFromStubs } from "../support/index/fill-from-stubs.js";
import { holdLease } from "../support/index/hold-lease.js";
import { openIndex } from "../support/index/open-index.js";
import { buildService } from "../support/service/build-service.js";
import { createChainStub, serveChains } from "../support/stubs/chain-stub.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import {
  mainnetNetwork,
  transferSentEvent,
  withdrawalBondedEvent,
} from "../unit/transfers/index/support/hop-events.js";
import { readAllRows } from "../unit/transfers/index/support/sync-harness.js";

// The command as a process of its own, so that it can be killed.

const KILLS = isFullEffort ? 50 : 3;
/** More than all killed runs read together. */
const EVENTS = isFullEffort ? 100_000 : 40_000;
/** Some minutes on a busy machine; only a hang takes longer. */
const TIMEOUT_MS = 1_200_000;
const folder = useTemporaryFolder();

/** Optimism with two events in each block; the other chains have none. */
const stubs = [...mainnetNetwork.chains.values()].map(({ slug, chainId }) => {
  const stub = createChainStub({ slug, chainId, head: slug === "optimism" ? EVENTS / 2 + 100 : 100 });
  stub.finalized = stub.head;
  for (let number = 1; slug === "optimism" && number <= EVENTS / 2; number++) {
    const leg = { from: "optimism", to: "optimism" };
    stub.setBlock(number, [transferSentEvent(`${number}`, leg), withdrawalBondedEvent(`${number}`, leg)]);
  }
  return stub;
});

let onRequest = (_slug: string): void => {};
let server: Awaited<ReturnType<typeof serveChains>>;
let command: string;
beforeAll(async () => {
  server = await serveChains(stubs, (slug) => onRequest(slug));
  command = await buildService();
});
afterAll(() => server.close());

const started: ChildProcess[] = [];
afterEach(() => {
  onRequest = () => {};
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

function launch(file: string | undefined, args: readonly string[]) {
  const urls = stubs.map(({ client: { slug } }) => [`RPC_URL_${slug.toUpperCase()}`, server.urlOf(slug)] as const);
  const child = spawn(process.execPath, [command, "index", ...args], {
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
  return { child, ended, output: () => text };
}

const FROM_START = ["--from", "optimism:0"];

test(
  `has the rows of an undisturbed run after being killed ${KILLS} times at any point`,
  async () => {
    const file = `${folder()}/killed`;
    let killed = 0;
    for (let round = 0; round < KILLS; round++) {
      const run = launch(file, FROM_START);
      let left = 1 + ((37 * round) % 70);
      onRequest = (slug) => {
        if (slug === "optimism") left -= 1;
        // The transaction of a request may end some time after it.
        if (left === 0) setTimeout(() => run.child.kill("SIGKILL"), (7 * round) % 20);
      };
      if ((await run.ended) === "SIGKILL") killed += 1;
    }
    expect(killed).toBe(KILLS);
    const sentSoFar = (await readAllRows(file)).sends.length;
    expect(sentSoFar).toBeGreaterThan(0);
    expect(sentSoFar).toBeLessThan(EVENTS / 2);
    onRequest = () => {};
    const last = launch(file, FROM_START);
    expect(await last.ended).toBe(0);
    const [actual, clean] = [await readAllRows(file), await fillFromStubs(`${folder()}/clean`, stubs)];
    expect(clean.sends).toHaveLength(EVENTS / 2);
    expect(clean.deliveries).toHaveLength(EVENTS / 2);
    for (const table of ["cursors", "blocks", "sends", "deliveries"] as const) {
      expect(actual[table].length, table).toBe(clean[table].length);
      // Row by row: a difference of a hundred thousand rows would take too long to print.
      for (const [index, row] of clean[table].entries()) {
        if (JSON.stringify(actual[table][index]) !== JSON.stringify(row)) expect(actual[table][index]).toEqual(row);
      }
    }
  },
  TIMEOUT_MS,
);

describe("the command", () => {
  test("keeps its rows on Ctrl-C, says so, and resumes when started again", async () => {
    const file = `${folder()}/interrupted`;
    const first = launch(file, FROM_START);
    let requests = 0;
    onRequest = () => {
      requests += 1;
      if (requests === 100) first.child.kill("SIGINT");
    };
    expect(await first.ended).toBe(1);
    expect(first.output()).toContain("start the command again to continue");
    const { cursors, sends } = await readAllRows(file);
    expect(sends.length).toBeGreaterThan(0);
    expect(sends.length).toBeLessThan(EVENTS / 2);
    const before = JSON.stringify(cursors);
    const second = launch(file, ["--from", `optimism:${0.4 * EVENTS}`]);
    expect(await second.ended, second.output()).toBe(0);
    expect(second.output()).toMatch(/optimism: (\d+)\/\1 blocks, \d+ events, \d+ blocks\/s, done\n/);
    expect(second.output()).toContain("the index is complete\n");
    expect(JSON.stringify((await readAllRows(file)).cursors)).not.toBe(before);
  });

  test("names the process that holds the lease, and takes over when that releases it", async () => {
    const file = `${folder()}/held`;
    const index = await openIndex(file);
    const lease = await holdLease(index.leases, "history.optimism");
    const run = launch(file, ["--from", `optimism:${EVENTS / 2}`]);
    await expect.poll(run.output).toContain(`optimism: process ${process.pid} is already filling this chain`);
    await lease.release();
    expect(await run.ended).toBe(0);
    await index.close();
  });

  test.each([
    [["--help"], 0, /^Fills the transfer index/],
    [["--form", "2024-01-01"], 2, /^hop-gateway: Unknown option '--form'.*hop-gateway index --help/],
    [["--from", "yesterday"], 2, /^hop-gateway: --from must be a date/],
    [["--from", "nowhere:1"], 2, /^hop-gateway: --from must be a date/],
  ])("%j ends with %i", async (args, code, message) => {
    const run = launch(`${folder()}/arguments`, args);
    expect(await run.ended).toBe(code);
    expect(run.output()).toMatch(message);
  });

  test("requires a file", async () => {
    const run = launch(undefined, []);
    expect(await run.ended).toBe(1);
    expect(run.output()).toContain("INDEX is not sqlite:<file> or postgres://...");
  });
});
