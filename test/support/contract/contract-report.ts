import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RecordedResponse } from "./response-recorder.js";
import { createResponseValidator, readOpenApi, type ValidateResponse } from "./response-validator.js";

// How many answers were held against gen/openapi.json, and which were wrong, from all files of a run.

/** Names of the files in the folder of what is said. */
export const RESPONSES_FILE_PREFIX = "answers";
const COUNTS_FILE_PREFIX = "judged";

/** Judges answers one by one. */
export interface ContractReport {
  add(answer: RecordedResponse): void;
  /** What was wrong since the last call, in words without any value that came from a caller. */
  takeProblems(): readonly string[];
  /** Appends its counts to what the run knows. */
  saveCounts(folder: string): void;
}

type Counts = Record<string, number>;

export function createContractReport(): ContractReport {
  const counts: Counts = {};
  let problems: string[] = [];
  let judge: ValidateResponse | undefined;
  return {
    add(answer) {
      const { method, path, parameters, status, headers } = answer;
      let wrong: readonly string[] | undefined;
      try {
        judge ??= createResponseValidator(readOpenApi());
        wrong = judge(answer);
      } catch (error) {
        // Told with the test that got the answer.
        wrong = [`it could not be judged: ${String(error)}`];
      }
      if (wrong === undefined) return;
      const known = /^\/v1\/[a-z-]{1,40}$/.test(path) ? path : "other";
      counts[`${known} ${status}`] = (counts[`${known} ${status}`] ?? 0) + 1;
      if (wrong.length === 0) return;
      const request = `${method} ${known}?${parameters.join("&")} (${headers["x-request-id"]})`;
      problems.push(`${request} was answered ${status} against gen/openapi.json: ${wrong.slice(0, 3).join("; ")}`);
    },
    takeProblems() {
      const taken = problems;
      problems = [];
      return taken;
    },
    saveCounts(folder) {
      appendFileSync(`${folder}/${COUNTS_FILE_PREFIX}-${process.pid}`, `${JSON.stringify(counts)}\n`);
    },
  };
}

/**
 * Judges what processes of their own have recorded, adds up what all files have counted, and writes it to
 * node_modules/.cache/contract/<project>.json.
 * @returns what is wrong with the recorded ones
 */
export function writeContractReport(folder: string, project: string): readonly string[] {
  const recorded = createContractReport();
  for (const line of readLines(folder, RESPONSES_FILE_PREFIX)) recorded.add(JSON.parse(line) as RecordedResponse);
  recorded.saveCounts(folder);
  const all: Counts = {};
  for (const line of readLines(folder, COUNTS_FILE_PREFIX)) {
    for (const [key, count] of Object.entries(JSON.parse(line) as Counts)) all[key] = (all[key] ?? 0) + count;
  }
  const byKey = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  const total = Object.values(all).reduce((sum, count) => sum + count, 0);
  const cache = fileURLToPath(new URL("../../../node_modules/.cache/contract/", import.meta.url));
  mkdirSync(cache, { recursive: true });
  writeFileSync(`${cache}${project}.json`, `${JSON.stringify({ total, byPathAndStatus: byKey }, undefined, 2)}\n`);
  return recorded.takeProblems();
}

function readLines(folder: string, prefix: string): string[] {
  const files = readdirSync(folder).filter((name) => name.startsWith(`${prefix}-`));
  return files.flatMap((name) => readFileSync(`${folder}/${name}`, "utf8").split("\n").filter(Boolean));
}
