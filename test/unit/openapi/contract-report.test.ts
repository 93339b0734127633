import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { answersFile, concludeContract, createTally } from "../../support/contract/contract-report.js";
import type { HttpAnswer } from "../../support/contract/response-recorder.js";
import { temporaryFolder } from "../../support/temporary-folder.js";

// What the judge sees is told, and counted.

const folder = temporaryFolder();
const project = "record-test";
const counted = new URL(`../../../node_modules/.cache/contract/${project}.json`, import.meta.url);
afterAll(() => rm(counted, { force: true }));

const headers = { "x-request-id": "mine" };
const wrong: HttpAnswer = { method: "GET", path: "/v1/quote", parameters: ["amount"], status: 418, headers, body: "" };
const right: HttpAnswer = { ...wrong, status: 304 };

test("what is wrong is told once, with the request and without its values", () => {
  const tally = createTally();
  tally.add(right);
  expect(tally.takeProblems()).toEqual([]);
  tally.add(wrong);
  const said = "GET /v1/quote?amount (mine) was answered 418 against gen/openapi.json: status 418 is not declared";
  expect(tally.takeProblems()).toEqual([said]);
  expect(tally.takeProblems()).toEqual([]);
});

test("what other processes recorded is judged at the end, and all are counted", async () => {
  const tally = createTally();
  for (const each of [right, wrong, { ...wrong, method: "OPTIONS" }]) tally.add(each);
  tally.save(folder());
  const lines = [right, { ...right, path: "/v1/0xkey" }].map((each) => `${JSON.stringify(each)}\n`);
  await writeFile(`${folder()}/${answersFile}-1`, lines.join(""));
  expect(concludeContract(folder(), project)).toEqual([expect.stringContaining("nothing at this path")]);
  expect(JSON.parse(await readFile(counted, "utf8"))).toEqual({
    total: 4,
    byPathAndStatus: { "/v1/quote 304": 2, "/v1/quote 418": 1, "other 304": 1 },
  });
});
