import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import {
  createContractReport,
  RESPONSES_FILE_PREFIX,
  writeContractReport,
} from "../../../support/contract/contract-report.js";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";

// Deviations from the description are reported and counted.

const folder = useTemporaryFolder();
const project = "record-test";
const countsFile = new URL(`../../../../node_modules/.cache/contract/${project}.json`, import.meta.url);
afterAll(() => rm(countsFile, { force: true }));

const headers = { "x-request-id": "mine" };
const undeclared: RecordedResponse = {
  method: "GET",
  path: "/v1/quote",
  parameters: ["amount"],
  status: 418,
  headers,
  body: "",
};
const declared: RecordedResponse = { ...undeclared, status: 304 };

test("reports a problem once, with the request but without its values", () => {
  const report = createContractReport();
  report.add(declared);
  expect(report.takeProblems()).toEqual([]);
  report.add(undeclared);
  const problem =
    "GET /v1/quote?amount (mine) returned 418, which gen/openapi.json does not allow: status 418 is not declared";
  expect(report.takeProblems()).toEqual([problem]);
  expect(report.takeProblems()).toEqual([]);
});

test("validates the responses of other processes at the end and counts all", async () => {
  const report = createContractReport();
  for (const response of [declared, undeclared, { ...undeclared, method: "OPTIONS" }]) report.add(response);
  report.saveCounts(folder());
  const lines = [declared, { ...declared, path: "/v1/0xkey" }].map((response) => `${JSON.stringify(response)}\n`);
  await writeFile(`${folder()}/${RESPONSES_FILE_PREFIX}-1`, lines.join(""));
  expect(writeContractReport(folder(), project)).toEqual([expect.stringContaining("the path is not declared")]);
  expect(JSON.parse(await readFile(countsFile, "utf8"))).toEqual({
    total: 4,
    byPathAndStatus: { "/v1/quote 304": 2, "/v1/quote 418": 1, "other 304": 1 },
  });
});
