import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withGateway } from "../support/service/in-process-gateway.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { askLieQueries, COMMON_LIE, LIE_QUERIES, type LieAnswers, listUntrue } from "./lies/lie-queries.js";
import { type LyingNetwork, startLyingNetwork } from "./lies/lying-network.js";

// The first of three endpoints of every chain lies. With a quorum of two no lie reaches an answer by way of the index.
// test/replicas/ has the same for what replicas and workers share.

const folder = useTemporaryFolder();
let network: LyingNetwork;
let truth: LieAnswers;

const ask = (url: string): Promise<LieAnswers> => askLieQueries(url, network.transfers);

/** Runs a gateway of its own. */
const withSettings = <T>(settings: Readonly<Record<string, string>>, work: (url: string) => Promise<T>) =>
  withGateway({ ...network.environment, REQUEST_TIMEOUT_MS: "60000", ...settings }, ({ url }) => work(url));

beforeAll(async () => {
  network = await startLyingNetwork();
  truth = await withSettings({}, ask);
  expect(LIE_QUERIES.map((name) => truth[name].said.status)).toEqual([200, 200, 200]);
  network.setLie(COMMON_LIE);
});
afterAll(() => network.stop());

test("the lie makes every answer wrong where it is believed", async () => {
  // Where the first endpoint is late, an honest one is asked beside it.
  await expect.poll(() => withSettings({}, async (url) => listUntrue(await ask(url), truth))).toEqual(LIE_QUERIES);
});

const STATUS_QUERIES = ["status by hash", "status by id"] as const;

/** Returns where the statuses come from, and which of them are untrue. */
async function askStatuses(url: string) {
  const answers = await ask(url);
  const untrue = listUntrue(answers, truth);
  return {
    sources: STATUS_QUERIES.map((name) => answers[name].source),
    untrue: STATUS_QUERIES.filter((name) => untrue.includes(name)),
  };
}

/** Time in which a gateway fills an index, as a rule. */
const FILL_MS = 2_000;

/**
 * Fills an index until the statuses come from it, by one gateway after the other: each keeps what it has read from the chains
 * before. Returns what any of them said that was untrue.
 */
async function fillIndex(settings: Readonly<Record<string, string>>): Promise<readonly unknown[]> {
  const untrue: unknown[] = [];
  const askAfterFilling = async (url: string): Promise<readonly unknown[]> => {
    await sleep(FILL_MS);
    const statuses = await askStatuses(url);
    untrue.push(...statuses.untrue);
    return statuses.sources;
  };
  await expect.poll(() => withSettings(settings, askAfterFilling)).toEqual(["index", "index"]);
  return untrue;
}

test("no lie gets into an index, and what is in it is told without the chains", async () => {
  const index = { INDEX: `sqlite:${join(folder(), "index")}`, INDEX_FROM: "2020-01-01" };
  expect(await fillIndex({ ...index, RPC_QUORUM: "2" })).toEqual([]);
  // Who believes one endpoint is told the truth by the index, too.
  expect(await withSettings(index, askStatuses)).toEqual({ sources: ["index", "index"], untrue: [] });
});

test("an index that one endpoint has filled keeps what that said", async () => {
  let count = 0;
  const fillAndConfirm = async () => {
    const index = { INDEX: `sqlite:${join(folder(), `of-one-${count++}`)}`, INDEX_FROM: "2020-01-01" };
    await fillIndex(index);
    return withSettings({ ...index, RPC_QUORUM: "2" }, askStatuses);
  };
  await expect.poll(fillAndConfirm).toEqual({ sources: ["index", "index"], untrue: STATUS_QUERIES });
});
