import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import {
  createContractReport,
  RESPONSES_FILE_PREFIX,
  writeContractReport,
} from "../../../support/contract/contract-report.js";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";

// What the judge sees is told, and counted.

const folder = useTemporaryFolder();
const project = "record-test";
const counted = new URL(`../../../../node_modules/.cache/contract/${project}.json`, import.meta.url);
afterAll(() => rm(counted, { force: true }));

const headers = { "x-request-id": "mine" };
const wrong: RecordedResponse = {
  method: "GET",
  path: "/v1/quote",
  parameters: ["amount"],
  status: 418,
  headers,
  body: "",
};
const right: RecordedResponse = { ...wrong, status: 304 };

test("what is wrong is told once, with the request and without its values", () => {
  const tally = createContractReport();
  tally.add(right);
  expect(tally.takeProblems()).toEqual([]);
  tally.add(wrong);
  const said = "GET /v1/quote?amount (mine) was answered 418 against gen/openapi.json: status 418 is not declared";
  expect(tally.takeProblems()).toEqual([said]);
  expect(tally.takeProblems()).toEqual([]);
});

test("what other processes recorded is judged at the end, and all are counted", async () => {
  const tally = createContractReport();
  for (const each of [right, wrong, { ...wrong, method: "OPTIONS" }]) tally.add(each);
  tally.saveCounts(folder());
  const lines = [right, { ...right, path: "/v1/0xkey" }].map((each) => `${JSON.stringify(each)}\n`);
  await writeFile(`${folder()}/${RESPONSES_FILE_PREFIX}-1`, lines.join(""));
  expect(writeContractReport(folder(), project)).toEqual([expect.stringContaining("nothing at this path")]);
  expect(JSON.parse(await readFile(counted, "utf8"))).toEqual({
    total: 4,
    byPathAndStatus: { "/v1/quote 304": 2, "/v1/quote 418": 1, "other 304": 1 },
  });
});
